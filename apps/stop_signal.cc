#include "apps/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "apps/exit_code.h"
#include "core/check.h"

namespace ringtail {
namespace {

std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a handler may not wait for a lock");

void OnSignal(int signal) {
  int none = 0;
  if (!stop_signal.compare_exchange_strong(none, signal)) _exit(kExitSignalBase + signal);
}

}  // namespace

void InstallStopSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;  // system calls in the middle of a checkpoint go on
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    RT_CHECK(sigaction(signal, &action, nullptr) == 0, "sigaction failed");
  }
}

int StopSignal() { return stop_signal.load(std::memory_order_relaxed); }

void SetStopSignalForTest(int signal) { stop_signal.store(signal); }

}  // namespace ringtail
