// ServerQueue: what arrives at a server is done one after the other, in the order of arrival; some
// of it keeps the server busy.
//
//   arrives   push A   pull B   push C           pull B is answered once A is decoded and applied
//   busy      [decode A, update][decode C, update]
//
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_SERVER_QUEUE_H_
#define RINGTAIL_APPS_EMULATOR_RULES_SERVER_QUEUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "apps/emulator/emulated_job.h"
#include "core/status.h"

namespace ringtail {

class ServerQueue {
 public:
  // Does something, and returns the seconds that it takes at full speed; 0: none.
  using Action = std::function<StatusOr<double>()>;

  // `host`: the worker whose speed the server has. `job` must outlive it, and it stays where it is.
  ServerQueue(EmulatedJob* job, int host) : job_(job), host_(host) {}
  ServerQueue(const ServerQueue&) = delete;
  ServerQueue& operator=(const ServerQueue&) = delete;

  Status Serve(Action action) {
    waiting_.push_back(std::move(action));
    return busy_ ? OkStatus() : ServeNext();
  }

 private:
  Status ServeNext();

  EmulatedJob* const job_;
  const int host_;
  std::deque<Action> waiting_;
  bool busy_ = false;
  int64_t served_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_SERVER_QUEUE_H_
