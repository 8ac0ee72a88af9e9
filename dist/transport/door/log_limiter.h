// LogLimiter: lets the first lines of a kind through and then at most one in each interval, which
// says how many were left out; so that strangers cannot fill a disk by knocking at the door.
//
//   if (const auto note = limiter.Allow()) LogWarning("turned away ..." + *note);
//
// Thread-safety: any thread.
#ifndef RINGTAIL_DIST_TRANSPORT_DOOR_LOG_LIMITER_H_
#define RINGTAIL_DIST_TRANSPORT_DOOR_LOG_LIMITER_H_

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/mutex.h"

namespace ringtail {

class LogLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  explicit LogLimiter(int first = 5, Clock::duration interval = std::chrono::seconds(10))
      : left_(first), interval_(interval) {}

  // What to put behind the line; nothing: leave it out.
  std::optional<std::string> Allow(Clock::time_point now = Clock::now()) RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (left_ == 0 && now < next_) {
      ++omitted_;
      return std::nullopt;
    }
    if (left_ > 0) --left_;
    next_ = now + interval_;
    const int64_t omitted = std::exchange(omitted_, 0);
    return omitted == 0 ? "" : fmt::format(" (and {} more before it)", omitted);
  }

 private:
  Mutex mutex_;
  int left_ RT_GUARDED_BY(mutex_);
  const Clock::duration interval_;
  Clock::time_point next_ RT_GUARDED_BY(mutex_);
  int64_t omitted_ RT_GUARDED_BY(mutex_) = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_DOOR_LOG_LIMITER_H_
