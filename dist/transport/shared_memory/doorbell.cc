#include "dist/transport/shared_memory/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace ringtail {
namespace {

// Not FUTEX_PRIVATE_FLAG: the word is shared by processes. The bits say which thread sleeps or is
// woken.
void Futex(std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* until,
           uint32_t bits) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation, value, until, nullptr, bits);
}

void Wake(Doorbell* bell, BellState who) { Futex(&bell->rung, FUTEX_WAKE_BITSET, 1, nullptr, who); }

// steady_clock is CLOCK_MONOTONIC, which is what FUTEX_WAIT_BITSET counts in.
timespec ToTimespec(Deadline deadline) {
  const auto since = deadline.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  return {.tv_sec = seconds.count(),
          .tv_nsec = std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds).count()};
}

}  // namespace

void RingBell(Doorbell* bell) {
  bell->rung.fetch_add(1);
  const uint32_t state = bell->state.load();
  if ((state & kCaller) != 0) {
    Wake(bell, kCaller);
  } else if ((state & kBack) == 0 && (state & kOwnThread) != 0) {
    Wake(bell, kOwnThread);
  }
}

void WakeAtBell(Doorbell* bell, BellState who) {
  bell->rung.fetch_add(1);
  if ((bell->state.load() & who) != 0) Wake(bell, who);
}

void SleepAtBell(Doorbell* bell, BellState who, uint32_t seen, Deadline deadline) {
  if (deadline.time_since_epoch().count() <= 0) return;  // long ago
  bell->state.fetch_or(who);
  const timespec until = ToTimespec(deadline);
  if (bell->rung.load() == seen) Futex(&bell->rung, FUTEX_WAIT_BITSET, seen, &until, who);
  bell->state.fetch_and(~uint32_t{who});
}

}  // namespace ringtail
