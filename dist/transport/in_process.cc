#include "dist/transport/in_process.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <deque>
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
        members_(world_size) {}

  int world_size() const { return world_size_; }

  void Post(const Operation& operation) {
    const std::optional<Operation> partner = FindPartner(operation);
    TellLosses();
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
    {
      MutexLock lock(&mutex_);
      EndLocked(rank, cause, AbortSeenByPeer(rank, cause));
    }
    TellLosses();
  }

  Status EndCause(int rank) RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return members_[rank].ended;
  }

  Status CauseAt(int rank, int peer) RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return CauseAtLocked(rank, peer);
  }

  void TolerateLosses(int rank, std::shared_ptr<PeerLossObserver> observer) RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    RT_CHECK(!members_[rank].tolerant, "a transport becomes tolerant once");
    members_[rank].tolerant = true;
    members_[rank].observer = std::move(observer);
  }

  void GiveUp(int rank, int peer, const Status& cause) RT_EXCLUDES(mutex_) {
    {
      MutexLock lock(&mutex_);
      const Status given_up = GivenUpBy(rank, cause);
      if (members_[rank].tolerant) {
        LoseLocked(rank, peer, cause);
        EndLocked(peer, given_up, AbortSeenByPeer(peer, given_up));
      } else {
        EndLocked(rank, cause, AbortSeenByPeer(rank, cause));
      }
    }
    TellLosses();
  }

  // Waits for `rank` end in vain.
  void Leave(int rank) RT_EXCLUDES(mutex_) {
    {
      MutexLock lock(&mutex_);
      members_[rank].left = true;
      for (const auto& [key, operation] : waiting_) {
        RT_CHECK(operation.rank != rank, "a transport is destroyed after its last operation");
      }
      std::set<int> waiting;
      for (const auto& [key, operation] : waiting_) {
        if (operation.peer == rank) waiting.insert(operation.rank);
      }
      for (const int other : waiting) FailLocked(other, rank, HasLeft(rank));
    }
    TellLosses();
  }

 private:
  struct Member {
    Status ended;
    bool left = false;
    bool tolerant = false;
    std::shared_ptr<PeerLossObserver> observer;
    std::map<int, Status> lost;  // peers
  };
  struct Loss {
    std::shared_ptr<PeerLossObserver> observer;  // to be told
    int peer = 0;
    Status cause;
  };

  size_t WayOf(int from, int to) const { return static_cast<size_t>(from) * world_size_ + to; }

  // Sender, receiver, and which message.
  using Key = std::tuple<int, int, MessageTag>;

  static Status HasLeft(int rank) {
    return {StatusCode::kUnavailable, fmt::format("rank {} has left the world", rank)};
  }

  // Why `rank` cannot exchange anything with `peer`; OK: it can.
  Status CauseAtLocked(int rank, int peer) const RT_REQUIRES(mutex_) {
    const Member& member = members_[rank];
    if (!member.ended.ok()) return member.ended;
    const auto lost = member.lost.find(peer);
    return lost == member.lost.end() ? Status() : lost->second;
  }

  // The operation that `operation` meets; nothing if it has to wait, or has failed.
  std::optional<Operation> FindPartner(const Operation& operation) RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (members_[operation.peer].left) {
      FailLocked(operation.rank, operation.peer, HasLeft(operation.peer));
    }
    if (const Status cause = CauseAtLocked(operation.rank, operation.peer); !cause.ok()) {
      operation.Complete(cause);
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
    const Status cause =
        match.Annotate(DescribeOperation(to.direction, to.peer, to.label.tag, to.bytes));
    FailLocked(to.rank, to.peer, cause);
    from.Complete(CauseAtLocked(from.rank, from.peer));
    return {};
  }

  // `rank` finds that `peer` has left, or breaks the rules.
  void FailLocked(int rank, int peer, const Status& cause) RT_REQUIRES(mutex_) {
    if (!members_[rank].tolerant) return EndLocked(rank, cause, AbortSeenByPeer(rank, cause));
    LoseLocked(rank, peer, cause);
    if (members_[peer].left) return;
    const Status given_up = GivenUpBy(rank, cause);
    EndLocked(peer, given_up, AbortSeenByPeer(peer, given_up));
  }

  // Others that are not tolerant end, too, and pass on what they have been told.
  void EndLocked(int rank, const Status& cause, const Status& seen_by_peers) RT_REQUIRES(mutex_) {
    if (!members_[rank].ended.ok()) return;
    members_[rank].ended = cause;
    Complete([rank](const Operation& operation) { return operation.rank == rank; }, cause);
    for (int other = 0; other < world_size_; ++other) {
      if (members_[other].tolerant) {
        if (other != rank) LoseLocked(other, rank, seen_by_peers);
      } else {
        EndLocked(other, seen_by_peers, seen_by_peers);
      }
    }
  }

  void LoseLocked(int rank, int peer, const Status& cause) RT_REQUIRES(mutex_) {
    Member& member = members_[rank];
    if (!member.ended.ok() || !member.lost.emplace(peer, cause).second) return;
    Complete([=](const Operation& one) { return one.rank == rank && one.peer == peer; }, cause);
    if (member.observer != nullptr) losses_.push_back({member.observer, peer, cause});
  }

  template <typename Which>
  void Complete(const Which& which, const Status& cause) RT_REQUIRES(mutex_) {
    std::erase_if(waiting_, [&](const auto& entry) {
      if (!which(entry.second)) return false;
      entry.second.Complete(cause);
      return true;
    });
  }

  // Calls the observers of what has been lost, without the lock.
  void TellLosses() RT_EXCLUDES(mutex_) {
    for (;;) {
      Loss loss;
      {
        MutexLock lock(&mutex_);
        if (losses_.empty()) return;
        loss = std::move(losses_.front());
        losses_.pop_front();
      }
      loss.observer->OnPeerLost(loss.peer, loss.cause);
    }
  }

  const int world_size_;
  std::vector<std::atomic<uint64_t>> arrived_, data_;  // messages, by WayOf
  Mutex mutex_;
  std::vector<Member> members_ RT_GUARDED_BY(mutex_);  // by rank
  std::deque<Loss> losses_ RT_GUARDED_BY(mutex_);      // whose observers are to be told
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
  Status EndCause() const override { return hub_->EndCause(rank_); }
  Status TolerateLosses(std::shared_ptr<PeerLossObserver> observer) override {
    hub_->TolerateLosses(rank_, std::move(observer));
    return {};
  }
  Status CauseWith(int peer) const override { return hub_->CauseAt(rank_, peer); }
  void LosePeer(int peer, const Status& cause) override { hub_->GiveUp(rank_, peer, cause); }

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
