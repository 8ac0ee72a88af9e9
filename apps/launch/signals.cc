#include "apps/launch/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/check.h"
#include "core/stop_signal.h"

namespace ringtail {

int ReceiveSignals(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler == SIG_IGN && signal == SIGHUP) continue;
    // Ignored signals never become pending, and shells ignore SIGINT in background jobs.
    now = {};
    now.sa_handler = SIG_DFL;
    sigaction(signal, &now, nullptr);
    sigaddset(&set, signal);
  }
  RT_CHECK(sigprocmask(SIG_BLOCK, &set, nullptr) == 0, "sigprocmask failed");
  IgnoreBrokenPipes();
  const int file = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  RT_CHECK(file >= 0, "signalfd failed");
  return file;
}

int NextSignal(int file) {
  signalfd_siginfo info = {};
  return read(file, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

}  // namespace ringtail
