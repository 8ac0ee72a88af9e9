// Signals that ask this process to stop: SIGINT, SIGTERM, SIGHUP (the terminal is gone), SIGUSR1,
// SIGUSR2 and SIGXCPU (a batch scheduler's warnings).
//
//   int main() {
//     ReceiveStopSignals();  // before there is any other thread
//     while (StopSignal() == 0) Step();
//
// No handler interrupts a thread that computes: a library may have its stack pointer where the
// frame of a handler would overwrite the heap (oneDNN 2.6.3's dnnl_sgemm does). The calling thread
// blocks these signals, all that are made later inherit that, and one, "rt-signals", takes them.
//
// The first one is remembered; whoever works in steps, or waits, looks at it in between. What comes
// within kOneSignal counts as the same (timeout(1) signals a process and then its group); a later
// one ends the process at once, wherever it is, with 128 + its number. SIGXCPU, which the kernel
// repeats every second, never does that. SIGHUP is left alone if it is ignored (nohup).
// Thread-safety: any thread, once ReceiveStopSignals has returned. Cost of StopSignal: a load.
#ifndef RINGTAIL_CORE_STOP_SIGNAL_H_
#define RINGTAIL_CORE_STOP_SIGNAL_H_

#include <chrono>
#include <optional>
#include <string>

#include "core/status.h"

namespace ringtail {

inline constexpr std::chrono::milliseconds kOneSignal{1000};
// How long a wait may go on before it looks at StopSignal again.
inline constexpr std::chrono::milliseconds kLookForStop{50};

// Once per process. Ignores SIGPIPE, too.
void ReceiveStopSignals();

// A write to a pipe that nobody reads fails instead of ending the process.
void IgnoreBrokenPipes();

int StopSignal();  // the one that came first; 0: none so far
// Cancelled, with the signal's name, once there is one.
Status CheckNotStopped();

// What the first signal says at once on standard error; empty, as at first: nothing.
void SetStopNotice(std::string text);

// The earlier of `deadline` and the next look at StopSignal.
std::chrono::steady_clock::time_point NextLookForStop(
    std::chrono::steady_clock::time_point deadline);

std::string SignalName(int signal);  // "SIGSEGV"
bool AsksToStop(int signal);         // whether it is one of the above

void SetStopSignalForTest(int signal);

// What a signal that asks to stop means after those before it. A value, for one thread.
class StopRule {
 public:
  enum class Meaning { kStop, kNothingNew, kEndNow };
  Meaning Next(int signal, std::chrono::steady_clock::time_point now);

 private:
  std::optional<std::chrono::steady_clock::time_point> first_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STOP_SIGNAL_H_
