// LossInbox: what a transport tells of lost peers, until the thread that judges them looks. It passes
// the news on to another observer, too, at once.
// Thread-safety: any thread.
#ifndef RINGTAIL_DIST_LIVENESS_LOSS_INBOX_H_
#define RINGTAIL_DIST_LIVENESS_LOSS_INBOX_H_

#include <memory>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "dist/transport/transport.h"

namespace ringtail {

class LossInbox : public PeerLossObserver {
 public:
  // `next` may be null.
  explicit LossInbox(std::shared_ptr<PeerLossObserver> next) : next_(std::move(next)) {}

  void OnPeerLost(int peer, const Status& cause) override RT_EXCLUDES(mutex_) {
    {
      MutexLock lock(&mutex_);
      losses_.emplace_back(peer, cause);
    }
    if (next_ != nullptr) next_->OnPeerLost(peer, cause);
  }

  // Those since the last call.
  std::vector<std::pair<int, Status>> Take() RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return std::exchange(losses_, {});
  }

 private:
  const std::shared_ptr<PeerLossObserver> next_;
  Mutex mutex_;
  std::vector<std::pair<int, Status>> losses_ RT_GUARDED_BY(mutex_);
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_LOSS_INBOX_H_
