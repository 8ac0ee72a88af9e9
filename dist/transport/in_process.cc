#include "dist/transport/in_process.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/mutex.h"

namespace ringtail {
namespace {

// One Send or one Receive that has been posted.
struct Operation {
  Direction direction = Direction::kSend;
  int rank = 0, peer = 0;  // its owner, and the other end
  MessageLabel label;
  const std::byte* source = nullptr;  // of a Send
  std::byte* destination = nullptr;   // of a Receive
  Combine combine = nullptr;
  size_t bytes = 0;
  CompletionTarget done;

  int from() const { return direction == Direction::kSend ? rank : peer; }
  int to() const { return direction == Direction::kSend ? peer : rank; }
  void Complete(const Status& status) const {
    done.queue->Put(
        {done.id, status.Annotate(DescribeOperation(direction, peer, label.tag, bytes))});
  }
};

// What all ranks share.
class Hub {
 public:
  explicit Hub(int world_size)
      : world_size_(world_size),
        arrived_(static_cast<size_t>(world_size) * world_size),
        data_(arrived_.size()),
        ended_(world_size) {}

  int world_size() const { return world_size_; }

  void Post(const Operation& operation) RT_EXCLUDES(mutex_) {
    const std::optional<Operation> partner = FindPartner(operation);
    if (!partner) return;
    const bool send = operation.direction == Direction::kSend;
    const Operation& from = send ? operation : *partner;
    const Operation& to = send ? *partner : operation;
    // No other thread knows of the two any more, so the copy needs no lock.
    if (to.combine != nullptr) {
      to.combine(to.destination, from.source, from.bytes);
    } else if (from.bytes > 0) {
      std::memcpy(to.destination, from.source, from.bytes);
    }
    const size_t way = WayOf(from.rank, to.rank);
    if (!IsUrgent(from.label.tag)) ++arrived_[way];
    if (IsData(from.label.tag)) ++data_[way];
    from.Complete({});
    to.Complete({});
  }

  Traffic TrafficOf(int rank, int peer) const {
    return {.arrived = arrived_[WayOf(peer, rank)],
            .sent = data_[WayOf(rank, peer)],
            .received = data_[WayOf(peer, rank)]};
  }

  void End(int rank, const Status& cause) RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    EndLocked(rank, cause);
  }

  // Waits for `rank` end in vain.
  void Leave(int rank) RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    left_.insert(rank);
    for (const auto& [key, operation] : waiting_) {
      RT_CHECK(operation.rank != rank, "a transport is destroyed after its last operation");
    }
    for (const auto& [key, operation] : waiting_) {
      if (operation.peer != rank) continue;
      EndLocked(operation.rank, HasLeft(rank));  // and with it the whole world
      return;
    }
  }

 private:
  size_t WayOf(int from, int to) const { return static_cast<size_t>(from) * world_size_ + to; }

  // Sender, receiver, and which message.
  using Key = std::tuple<int, int, MessageTag>;

  static Status HasLeft(int rank) {
    return {StatusCode::kUnavailable, fmt::format("rank {} has left the world", rank)};
  }

  // The operation that `operation` meets; nothing if it has to wait, or has failed.
  std::optional<Operation> FindPartner(const Operation& operation) RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (left_.contains(operation.peer)) EndLocked(operation.rank, HasLeft(operation.peer));
    if (!ended_[operation.rank].ok()) {
      operation.Complete(ended_[operation.rank]);
      return {};
    }
    const Key key{operation.from(), operation.to(), operation.label.tag};
    const auto found = waiting_.find(key);
    if (found == waiting_.end()) {
      waiting_.emplace(key, operation);
      return {};
    }
    const Operation partner = found->second;
    RT_CHECK(partner.direction != operation.direction, "a tag is used once in each direction");
    const bool send = operation.direction == Direction::kSend;
    const Operation& from = send ? operation : partner;
    const Operation& to = send ? partner : operation;
    const Status match = CheckMatch(from.label, from.bytes, to.label, to.bytes);
    waiting_.erase(found);
    if (match.ok()) return partner;
    // As on a wire, the receiver notices it.
    to.Complete(match);
    EndLocked(to.rank,
              match.Annotate(DescribeOperation(to.direction, to.peer, to.label.tag, to.bytes)));
    from.Complete(ended_[from.rank]);
    return {};
  }

  void EndLocked(int rank, const Status& cause) RT_REQUIRES(mutex_) {
    for (int other = 0; other < world_size_; ++other) {
      if (ended_[other].ok()) ended_[other] = other == rank ? cause : AbortSeenByPeer(rank, cause);
    }
    for (const auto& [key, operation] : waiting_) operation.Complete(ended_[operation.rank]);
    waiting_.clear();
  }

  const int world_size_;
  std::vector<std::atomic<uint64_t>> arrived_, data_;  // messages, by WayOf
  Mutex mutex_;
  std::vector<Status> ended_ RT_GUARDED_BY(mutex_);  // by rank
  std::set<int> left_ RT_GUARDED_BY(mutex_);
  std::map<Key, Operation> waiting_ RT_GUARDED_BY(mutex_);
};

class InProcessTransport : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  ~InProcessTransport() override { hub_->Leave(rank_); }

  int rank() const override { return rank_; }
  int world_size() const override { return hub_->world_size(); }

  void StartSend(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                 CompletionTarget done) override {
    hub_->Post({.direction = Direction::kSend,
                .rank = rank_,
                .peer = peer,
                .label = label,
                .source = bytes.data(),
                .bytes = bytes.size(),
                .done = done});
  }

  void StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                    CompletionTarget done) override {
    hub_->Post({.direction = Direction::kReceive,
                .rank = rank_,
                .peer = peer,
                .label = label,
                .destination = buffer.bytes.data(),
                .combine = buffer.combine,
                .bytes = buffer.bytes.size(),
                .done = done});
  }

  Traffic TrafficWith(int peer) const override { return hub_->TrafficOf(rank_, peer); }

  void Abort(const Status& cause) override { hub_->End(rank_, cause); }

 private:
  const std::shared_ptr<Hub> hub_;
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> MakeInProcessWorld(int world_size) {
  RT_CHECK(world_size > 0, "a world has at least one rank");
  const auto hub = std::make_shared<Hub>(world_size);
  std::vector<std::unique_ptr<Transport>> transports;
  transports.reserve(world_size);
  for (int rank = 0; rank < world_size; ++rank) {
    transports.push_back(std::make_unique<InProcessTransport>(hub, rank));
  }
  return transports;
}

}  // namespace ringtail
