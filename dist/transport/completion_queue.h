// CompletionQueue: where finished operations of a transport come out, in the order in which they
// ended. Thread-safety: any thread puts in; one thread takes out. Cost: one lock each.
#ifndef RINGTAIL_DIST_TRANSPORT_COMPLETION_QUEUE_H_
#define RINGTAIL_DIST_TRANSPORT_COMPLETION_QUEUE_H_

#include <chrono>
#include <cstdint>
#include <deque>

#include "core/mutex.h"
#include "core/status.h"

namespace ringtail {

using Deadline = std::chrono::steady_clock::time_point;

struct Completion {
  uint64_t id = 0;  // as given with the operation
  Status status;
};

class CompletionQueue {
 public:
  // By the transport, once for each operation; from then on it does not touch the operation's
  // memory, nor this queue for its sake.
  void Put(Completion completion);

  // Waits for the next one. False if there is none by `deadline`.
  bool Next(Completion* completion, Deadline deadline);

 private:
  Mutex mutex_;
  ConditionVariable not_empty_;
  std::deque<Completion> completions_ RT_GUARDED_BY(mutex_);
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_COMPLETION_QUEUE_H_
