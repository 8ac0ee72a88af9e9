// CompletionQueue: where finished operations of a transport come out, in the order in which they
// ended. Thread-safety: any thread puts in; one thread takes out. Cost: one lock each.
#ifndef RINGTAIL_DIST_TRANSPORT_COMPLETION_QUEUE_H_
#define RINGTAIL_DIST_TRANSPORT_COMPLETION_QUEUE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>

#include "core/mutex.h"
#include "core/status.h"

namespace ringtail {

using Deadline = std::chrono::steady_clock::time_point;

struct Completion {
  uint64_t id = 0;  // as given with the operation
  Status status;
};

// A transport whose work the thread that waits in Next may do: what the thread wants is then there
// without another thread that would have to be woken first. Thread-safety: any thread.
class CompletionHelper {
 public:
  virtual ~CompletionHelper() = default;
  // For Help: what has happened before this is over.
  virtual uint32_t Moment() = 0;
  // Does what there is to be done for operations of any queue. If there is nothing, waits for it,
  // for Interrupt or for the deadline; not if there was one of them since `moment`. False: somebody
  // else does all this.
  virtual bool Help(uint32_t moment, Deadline deadline) = 0;
  virtual void Interrupt() = 0;
};

class CompletionQueue {
 public:
  enum class Owner {
    kHelps,
    // Only waits. For a thread that waits most of its life for what seldom comes: it would take the
    // work from the thread that wants its result, which would then have to be woken for each bit.
    kOnlyWaits,
  };
  explicit CompletionQueue(Owner owner = Owner::kHelps) : owner_(owner) {}

  // By the transport, once for each operation; from then on it does not touch the operation's
  // memory, nor this queue for its sake.
  void Put(Completion completion);

  // From now on a thread in Next helps this one, if it helps at all.
  void UseHelper(const std::shared_ptr<CompletionHelper>& helper);

  // Waits for the next one. False if there is none by `deadline`.
  bool Next(Completion* completion, Deadline deadline);

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
