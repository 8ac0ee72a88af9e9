// CompletionQueue: where finished operations of a transport come out, in the order in which they
// ended. Thread-safety: any thread puts in; one thread takes out. Cost: one lock each.
#ifndef RINGTAIL_DIST_TRANSPORT_COMPLETION_QUEUE_H_
#define RINGTAIL_DIST_TRANSPORT_COMPLETION_QUEUE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/transport/deadline.h"

namespace ringtail {

struct Completion {
  uint64_t id = 0;  // as given with the operation
  Status status;
};

// A transport that lets the thread that waits in Next do its work: what the thread waits for then
// arrives without waking another thread first. Thread-safety: any thread.
class CompletionHelper {
 public:
  virtual ~CompletionHelper() = default;
  // A point in time, for Help: what has happened before it is over.
  virtual uint32_t Moment() = 0;
  // Does the work of operations of any queue. If there is none, waits for some, for Interrupt or
  // for the deadline; not if one of them has come since `moment`. False: another thread does all
  // this.
  virtual bool Help(uint32_t moment, Deadline deadline) = 0;
  virtual void Interrupt() = 0;
};

class CompletionQueue {
 public:
  enum class Owner {
    kHelps,
    // Only waits. For a thread that mostly waits for rare events: it would take the work from the
    // thread that needs its result, which would then have to be woken for each piece.
    kOnlyWaits,
  };
  explicit CompletionQueue(Owner owner = Owner::kHelps) : owner_(owner) {}

  // Called by the transport once for each operation; from then on it does not touch the operation's
  // memory, nor this queue on its behalf.
  void Put(Completion completion);

  // From now on a thread in Next helps `helper`, if the owner helps.
  void UseHelper(const std::shared_ptr<CompletionHelper>& helper);

  // Waits for the next one. False if there is none by `deadline`.
  bool Next(Completion* completion, Deadline deadline);

  // Takes out `count` completions of a transport that has ended, which completes all its operations
  // at once; the limit is for machines that do not get to it. Ends the process if they do not come.
  // `counts`: whether a completion is one of them (others may be in the queue); none: all are.
  void Drain(size_t count, const std::function<bool(const Completion&)>& counts = nullptr);

 private:
  const Owner owner_;
  Mutex mutex_;
  ConditionVariable not_empty_;
  std::deque<Completion> completions_ RT_GUARDED_BY(mutex_);
  std::shared_ptr<CompletionHelper> helper_ RT_GUARDED_BY(mutex_);
  std::shared_ptr<CompletionHelper> helping_ RT_GUARDED_BY(mutex_);  // the owner is in its Help
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_COMPLETION_QUEUE_H_
