// Operations of a transport that moves frames: from the call to the completion.
//
// The memory of a Send is referred to by everything that still has to write it, gRPC included, for
// any length of time. So a SendOperation is shared, and completes with its last reference.
//
// Ending: whether, and why, this rank's part in the world has ended, or what it has to do with one
// peer (which ends with the world at the latest). Shared with the operations, whose completions
// tell it. Thread-safety: Ending any thread; operations as said in
// peer_messages.h.
#ifndef RINGTAIL_DIST_TRANSPORT_OPERATION_H_
#define RINGTAIL_DIST_TRANSPORT_OPERATION_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/transport/transport.h"

namespace ringtail {

class Ending {
 public:
  // `world`: of which this is a part; none: this is the world's.
  explicit Ending(std::shared_ptr<const Ending> world = nullptr) : world_(std::move(world)) {}

  // True for the first; the first cause stays.
  bool Set(const Status& cause) RT_EXCLUDES(mutex_) {
    if (world_ != nullptr && !world_->cause().ok()) return false;
    MutexLock lock(&mutex_);
    if (!cause_.ok()) return false;
    cause_ = cause;
    return true;
  }
  Status cause() const RT_EXCLUDES(mutex_) {  // OK: not ended
    {
      MutexLock lock(&mutex_);
      if (!cause_.ok()) return cause_;
    }
    return world_ != nullptr ? world_->cause() : Status();
  }

 private:
  const std::shared_ptr<const Ending> world_;
  mutable Mutex mutex_;
  Status cause_ RT_GUARDED_BY(mutex_);
};

struct SendOperation {
  int peer;
  MessageLabel label;
  std::span<const std::byte> bytes;
  CompletionTarget done;
  std::shared_ptr<Ending> ending;

  SendOperation(int to, const MessageLabel& as, std::span<const std::byte> memory,
                CompletionTarget target, std::shared_ptr<Ending> of_peer)
      : peer(to), label(as), bytes(memory), done(target), ending(std::move(of_peer)) {}
  SendOperation(const SendOperation&) = delete;
  SendOperation& operator=(const SendOperation&) = delete;
  ~SendOperation() {
    Status status = ending->cause();
    if (!status.ok()) {
      status = status.Annotate(DescribeOperation(Direction::kSend, peer, label.tag, bytes.size()));
    }
    done.queue->Put({done.id, std::move(status)});
  }
};

struct ReceiveOperation {
  int peer = 0;
  MessageLabel label;
  ReceiveBuffer buffer;
  CompletionTarget done;

  std::string Describe() const {
    return DescribeOperation(Direction::kReceive, peer, label.tag, buffer.bytes.size());
  }
  // Once.
  void Complete(const Status& status) const {
    done.queue->Put({done.id, status.ok() ? status : status.Annotate(Describe())});
  }
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_OPERATION_H_
