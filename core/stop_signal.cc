#include "core/stop_signal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/machine/thread_budget.h"
#include "core/mutex.h"

namespace ringtail {
namespace {

constexpr std::array<int, 6> kStopSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
constexpr int kExitBase = 128;  // the convention of shells

std::atomic<int> stop_signal{0};
std::atomic<int> forwarded_to{-1};  // a pipe to rt-signals
static_assert(std::atomic<int>::is_always_lock_free, "a handler may not wait for a lock");

struct Received {
  int signal = 0;
  pid_t sender = 0;  // 0: the kernel, as for the terminal's Ctrl-C
};

// A library may have started threads before main() (OpenBLAS does), which do not block our signals.
// They do not compute for us, so that a handler may run there; it passes the signal on.
void PassOn(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const Received received{.signal = signal, .sender = info->si_pid};
  (void)!write(forwarded_to.load(), &received, sizeof(received));  // whole: shorter than PIPE_BUF
  errno = error;
}

struct Notice {
  Mutex mutex;
  std::string text RT_GUARDED_BY(mutex);
  std::string launcher RT_GUARDED_BY(mutex);
};

Notice& TheNotice() {
  static auto* const notice = new Notice;  // never destroyed: rt-signals lives on after main()
  return *notice;
}

// After the signal's name. A job that its launcher ends has often lost a rank, without which no step
// is finished; and mpirun sends SIGKILL soon.
std::string Sentence(const Received& received, const std::string& text,
                     const std::string& launcher) {
  if (launcher.empty() || received.signal != SIGTERM || received.sender != getppid()) {
    return ": " + text;
  }
  return " from " + launcher + ", which ends the job: another rank has ended, or " + launcher +
         " was told to stop";
}

// Formatted as a log line, but not written through the log, which may be blocked by its reader:
// this thread must be free to receive a second signal.
void SayNotice(const Received& received) {
  std::string line;
  {
    Notice& notice = TheNotice();
    MutexLock lock(&notice.mutex);
    if (notice.text.empty()) return;
    line = SignalName(received.signal) + Sentence(received, notice.text, notice.launcher) + "\n";
  }
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, sizeof("W 23:59:59 ")> stamp{};
  std::strftime(stamp.data(), stamp.size(), "W %H:%M:%S ", &local);
  // The current line may hold a progress bar or the terminal's "^C".
  line = (isatty(STDERR_FILENO) != 0 ? "\n" : "") + std::string(stamp.data()) + line;
  pollfd writable = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&writable, 1, 0) > 0) (void)!write(STDERR_FILENO, line.data(), line.size());
}

void OnSignal(const Received& received, StopRule* rule) {
  switch (rule->Next(received.signal, std::chrono::steady_clock::now())) {
    case StopRule::Meaning::kStop:
      stop_signal.store(received.signal);
      return SayNotice(received);
    case StopRule::Meaning::kNothingNew:
      return;
    case StopRule::Meaning::kEndNow:
      _exit(kExitBase + received.signal);  // files are whole at any moment (core/storage/file.h)
  }
}

void TakeSignals(int signals, int forwarded) {
  SetThreadName("rt-signals");
  StopRule rule;
  std::array<pollfd, 2> sources{{{signals, POLLIN, 0}, {forwarded, POLLIN, 0}}};
  while (true) {
    poll(sources.data(), sources.size(), -1);
    signalfd_siginfo info = {};
    while (read(signals, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      OnSignal(
          {.signal = static_cast<int>(info.ssi_signo), .sender = static_cast<pid_t>(info.ssi_pid)},
          &rule);
    }
    Received received;
    while (read(forwarded, &received, sizeof(received)) == static_cast<ssize_t>(sizeof(received))) {
      OnSignal(received, &rule);
    }
  }
}

bool IsIgnored(int signal) {
  struct sigaction now = {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

void ReceiveStopSignals() {
  IgnoreBrokenPipes();
  std::array<int, 2> pipe{-1, -1};
  RT_CHECK(pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) == 0, "cannot make a pipe");
  RT_CHECK(forwarded_to.exchange(pipe[1]) == -1, "ReceiveStopSignals is called once");
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kStopSignals) {
    // Shells ignore SIGINT in background jobs; that is not meant for us.
    if (signal == SIGHUP && IsIgnored(signal)) continue;
    sigaddset(&set, signal);
  }
  RT_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0, "pthread_sigmask failed");
  struct sigaction action = {};
  action.sa_sigaction = PassOn;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  action.sa_mask = set;
  for (const int signal : kStopSignals) {
    if (sigismember(&set, signal) == 1) sigaction(signal, &action, nullptr);
  }
  const int signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  RT_CHECK(signals >= 0, "signalfd failed");
  TheNotice();
  std::thread(TakeSignals, signals, pipe[0]).detach();
}

void IgnoreBrokenPipes() {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
}

int StopSignal() { return stop_signal.load(std::memory_order_relaxed); }

void StopAsBySignal(int signal) {
  int none = 0;
  if (stop_signal.compare_exchange_strong(none, signal)) SayNotice({.signal = signal});
}

Status CheckNotStopped() {
  const int signal = StopSignal();
  return signal == 0 ? OkStatus() : Cancelled("stopped by " + SignalName(signal));
}

void SetStopNotice(std::string text) {
  Notice& notice = TheNotice();
  MutexLock lock(&notice.mutex);
  notice.text = std::move(text);
}

void SetJobLauncher(std::string name) {
  Notice& notice = TheNotice();
  MutexLock lock(&notice.mutex);
  notice.launcher = std::move(name);
}

std::chrono::steady_clock::time_point NextLookForStop(
    std::chrono::steady_clock::time_point deadline) {
  return std::min(deadline, std::chrono::steady_clock::now() + kLookForStop);
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

bool AsksToStop(int signal) {
  return std::find(kStopSignals.begin(), kStopSignals.end(), signal) != kStopSignals.end();
}

void SetStopSignalForTest(int signal) { stop_signal.store(signal); }

StopRule::Meaning StopRule::Next(int signal, std::chrono::steady_clock::time_point now) {
  if (!first_) {
    first_ = now;
    return Meaning::kStop;
  }
  if (signal == SIGXCPU || now - *first_ < kOneSignal) return Meaning::kNothingNew;
  return Meaning::kEndNow;
}

}  // namespace ringtail
