// Signals that ask this process to stop: SIGINT, SIGTERM, SIGHUP (the terminal was closed),
// SIGUSR1, SIGUSR2 and SIGXCPU (warnings of batch schedulers).
//
//   int main() {
//     ReceiveStopSignals();  // before any other thread exists
//     while (StopSignal() == 0) Step();
//
// No handler interrupts a thread that computes: a library may set its stack pointer to a place
// where a handler's frame would overwrite the heap (oneDNN 2.6.3's dnnl_sgemm does). The calling
// thread blocks these signals, later threads inherit the mask, and one thread, "rt-signals",
// receives them.
//
// The first signal is stored; code that works in steps, or waits, polls it in between. A signal
// within kOneSignal counts as the same one (timeout(1) signals a process and then its group); a
// later one ends the process at once, wherever it is, with 128 + its number. SIGXCPU, which the
// kernel repeats every second, never does that. SIGHUP keeps being ignored if it was (nohup).
// Thread-safety: any thread, once ReceiveStopSignals has returned. Cost of StopSignal: a load.
#ifndef RINGTAIL_CORE_STOP_SIGNAL_H_
#define RINGTAIL_CORE_STOP_SIGNAL_H_

#include <chrono>
#include <optional>
#include <string>

#include "core/status.h"

namespace ringtail {

inline constexpr std::chrono::milliseconds kOneSignal{1000};
// The longest that a wait may continue before it polls StopSignal again.
inline constexpr std::chrono::milliseconds kLookForStop{50};

// Call once per process. Ignores SIGPIPE, too.
void ReceiveStopSignals();

// Makes a write to a pipe without a reader fail instead of ending the process.
void IgnoreBrokenPipes();

int StopSignal();  // the first signal received; 0: none so far
// Stops this process as its first signal would, since another process of the job has received it; nothing
// if it is stopped already. A signal that this process receives later is its first.
void StopAsBySignal(int signal);
// Cancelled, with the signal's name, once a signal has been received.
Status CheckNotStopped();

// The sentence that the first signal prints at once on standard error; empty (the default): none.
void SetStopNotice(std::string text);

// The program that has started this rank and ends all ranks by SIGTERM when one has died: "mpirun".
// Where SIGTERM comes from this process's parent, the notice then says so instead. (Of mpirun's
// ranks behind a shell that does not exec them, the parent is the shell.)
void SetJobLauncher(std::string name);

// The earlier of `deadline` and the next poll of StopSignal.
std::chrono::steady_clock::time_point NextLookForStop(
    std::chrono::steady_clock::time_point deadline);

std::string SignalName(int signal);  // "SIGSEGV"
bool AsksToStop(int signal);         // whether it is one of the above

void SetStopSignalForTest(int signal);

// What a stop signal means after the previous ones. A value type, for one thread.
class StopRule {
 public:
  enum class Meaning { kStop, kNothingNew, kEndNow };
  Meaning Next(int signal, std::chrono::steady_clock::time_point now);

 private:
  std::optional<std::chrono::steady_clock::time_point> first_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STOP_SIGNAL_H_
