#include "apps/emulator/rules/server_queue.h"

namespace ringtail {

// (An action may add others.)
Status ServerQueue::ServeNext() {
  while (!waiting_.empty()) {
    const Action action = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    RT_ASSIGN_OR_RETURN(const double seconds, action());
    busy_ = false;
    ++served_;
    if (seconds == 0) continue;
    busy_ = true;
    job_->queue()->Schedule(job_->EndOfWork(host_, served_, seconds), host_, [this] {
      busy_ = false;
      return ServeNext();
    });
    return OkStatus();
  }
  return OkStatus();
}

}  // namespace ringtail
