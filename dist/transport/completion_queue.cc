#include "dist/transport/completion_queue.h"

#include <utility>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr std::chrono::minutes kDrainLimit{5};

}  // namespace

void CompletionQueue::Put(Completion completion) {
  MutexLock lock(&mutex_);
  completions_.push_back(std::move(completion));
  // With the lock held: without it, the owner could take this completion, be content, and destroy
  // the queue before it is notified.
  not_empty_.NotifyOne();
  if (helping_ != nullptr) helping_->Interrupt();
}

void CompletionQueue::UseHelper(const std::shared_ptr<CompletionHelper>& helper) {
  if (owner_ == Owner::kOnlyWaits) return;
  MutexLock lock(&mutex_);
  if (helper_ != helper) helper_ = helper;
}

bool CompletionQueue::Next(Completion* completion, Deadline deadline) {
  for (bool helps = true;;) {
    std::shared_ptr<CompletionHelper> helper;
    uint32_t moment = 0;
    {
      MutexLock lock(&mutex_);
      while (completions_.empty() && (helper_ == nullptr || !helps)) {
        if (!not_empty_.WaitUntil(&mutex_, deadline) && completions_.empty()) return false;
      }
      if (!completions_.empty()) {
        *completion = std::move(completions_.front());
        completions_.pop_front();
        return true;
      }
      helper = helping_ = helper_;
      moment = helper->Moment();
    }
    helps = helper->Help(moment, deadline);
    MutexLock lock(&mutex_);
    helping_ = nullptr;
    if (completions_.empty() && std::chrono::steady_clock::now() >= deadline) return false;
  }
}

void CompletionQueue::Drain(size_t count, const std::function<bool(const Completion&)>& counts) {
  const Deadline deadline = std::chrono::steady_clock::now() + kDrainLimit;
  while (count > 0) {
    Completion completion;
    RT_CHECK(Next(&completion, deadline), "a transport that has ended completes its operations");
    if (!counts || counts(completion)) --count;
  }
}

}  // namespace ringtail
