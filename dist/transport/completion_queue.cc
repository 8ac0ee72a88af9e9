#include "dist/transport/completion_queue.h"

#include <utility>

namespace ringtail {

void CompletionQueue::Put(Completion completion) {
  MutexLock lock(&mutex_);
  completions_.push_back(std::move(completion));
  // With the lock held: without it, the owner could take this completion, be content, and destroy
  // the queue before it is notified.
  not_empty_.NotifyOne();
}

bool CompletionQueue::Next(Completion* completion, Deadline deadline) {
  MutexLock lock(&mutex_);
  while (completions_.empty()) {
    if (!not_empty_.WaitUntil(&mutex_, deadline) && completions_.empty()) return false;
  }
  *completion = std::move(completions_.front());
  completions_.pop_front();
  return true;
}

}  // namespace ringtail
