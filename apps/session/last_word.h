// LastWord: ends a process whose world has ended, unless its training thread does. What becomes of
// that thread shows in its progress (dist/liveness/progress.h):
//
//   it waits for others     its call fails at once, it writes its checkpoint and returns
//   it computes             it hears of the end after its step, and does the same
//   it evaluates, writes    for as long as a machine or a disk takes
//   it hangs                it moves no more: the process ends without it
//
//   auto training = std::make_shared<WatchedProgress>();
//   training->Watch(&monitor.progress()); ... training->Forget();       before the monitor ends
//   EndUnlessItReturns(LastWord(limits, culprit, now), training, exit_code, message);   returns at once
//
// Thread-safety: LastWord is a value of one thread; WatchedProgress has any threads.
#ifndef RINGTAIL_APPS_SESSION_LAST_WORD_H_
#define RINGTAIL_APPS_SESSION_LAST_WORD_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/mutex.h"
#include "dist/liveness/progress.h"

namespace ringtail {

// Of a training thread that may end before what looks at it.
class WatchedProgress {
 public:
  void Watch(const Progress* progress) RT_EXCLUDES(mutex_);
  void Forget() RT_EXCLUDES(mutex_) { Watch(nullptr); }
  std::optional<Progress::State> Read() const RT_EXCLUDES(mutex_);  // none: there is none to see

 private:
  mutable Mutex mutex_;
  const Progress* progress_ RT_GUARDED_BY(mutex_) = nullptr;
};

class LastWord {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Limits {
    // Without a move: of a thread that computes, as in a world that lives.
    std::chrono::milliseconds silence{10'000};
    // Of one that waits for others, has returned, or was found to hang.
    std::chrono::milliseconds returning{2'000};
    std::chrono::milliseconds most{300'000};  // from the end of the world on, whatever it does
  };

  // `hangs`: this rank is the one that the world has ended for.
  LastWord(const Limits& limits, bool hangs, TimePoint now)
      : limits_(limits), hangs_(hangs), begin_(now), moved_at_(now) {}

  // Whether the process has to end now. Called again and again, as time goes by.
  bool IsOver(const std::optional<Progress::State>& training, TimePoint now);

 private:
  std::chrono::milliseconds LimitOf(const std::optional<Progress::State>& training) const;

  const Limits limits_;
  const bool hangs_;
  const TimePoint begin_;
  TimePoint moved_at_;
  std::optional<uint64_t> counter_;  // when it moved last
};

// On a thread of its own: once the last word is over, logs `message` and ends the process.
void EndUnlessItReturns(LastWord last, std::shared_ptr<const WatchedProgress> training,
                        int exit_code, std::string message);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_SESSION_LAST_WORD_H_
