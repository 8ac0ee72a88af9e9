#include "dist/transport/routed_transport.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/logging.h"
#include "core/mutex.h"
#include "core/stop_signal.h"
#include "dist/transport/frames/peer_messages.h"
#include "dist/transport/operation.h"
#include "dist/transport/shared_memory/shared_memory.h"

namespace ringtail {
namespace {

class RoutedTransport : public Transport, private TransportObserver {
 public:
  explicit RoutedTransport(const PeerTable& peers) : peers_(peers) {}
  ~RoutedTransport() override;

  Status Connect(TransportListener* wire, std::chrono::milliseconds limit);

  int rank() const override { return peers_.rank; }
  int world_size() const override { return peers_.world_size(); }
  void Abort(const Status& cause) override { wire_->Abort(cause); }
  Status EndCause() const override { return wire_->EndCause(); }
  Status TolerateLosses(std::shared_ptr<PeerLossObserver> observer) override {
    return wire_->TolerateLosses(std::move(observer));
  }

 private:
  // What a rank of this host and this one have told each other.
  struct Neighbour {
    std::array<std::byte, kOfferBytes> offer{}, their_offer{};
    std::array<std::byte, 1> mapped{}, they_mapped{};
    std::unique_ptr<PeerMemory> memory;
  };

  void StartSend(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                 CompletionTarget done) override;
  void StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                    CompletionTarget done) override;
  Traffic TrafficWith(int peer) const override {
    return Shares(peer) ? messages_.at(peer)->traffic() : wire_->traffic(peer);
  }
  Status CauseWith(int peer) const override { return wire_->LossOf(peer); }
  void LosePeer(int peer, const Status& cause) override { wire_->GiveUp(peer, cause); }
  bool Shares(int peer) const { return shared_ != nullptr && shared_->Carries(peer); }
  void CheckLoss(int peer, const Status& status) {
    if (!status.ok()) LosePeer(peer, status);
  }

  void OnPeerLeft(int peer) override RT_EXCLUDES(mutex_);
  void OnPeerLost(int peer, const Status& cause) override;
  void OnEnd(const Status& cause) override;

  void MakeSharedMemory();
  Status Agree(Deadline deadline);
  void Map(int peer, Neighbour* neighbour);
  void Start(int peer, PeerMemory memory) RT_EXCLUDES(mutex_);
  // Exchanges a message of each kind with all neighbours.
  template <typename Own, typename Theirs>
  Status Exchange(uint32_t step, Own own, Theirs theirs, Deadline deadline);
  Status Await(CompletionQueue* queue, size_t operations, Deadline deadline);

  const PeerTable peers_;
  const std::shared_ptr<Ending> ending_ = std::make_shared<Ending>();
  // Of the ranks of this host.
  std::map<int, std::shared_ptr<Ending>> peer_endings_;
  std::map<int, std::unique_ptr<PeerMessages>> messages_;
  std::shared_ptr<SharedMemory> shared_;  // none: this rank cannot make any
  std::map<int, Neighbour> neighbours_;   // until all have agreed
  std::unique_ptr<Transport> wire_;

  Mutex mutex_;
  std::set<int> left_ RT_GUARDED_BY(mutex_);  // peers; some before their pair has agreed
};

RoutedTransport::~RoutedTransport() {
  OnEnd({StatusCode::kUnavailable, fmt::format("rank {} has left the world", rank())});
  if (shared_ != nullptr) shared_->Stop();  // from now on it does not abort the wire
  wire_.reset();
}

// ---- connecting ---------------------------------------------------------------------------------

Status RoutedTransport::Connect(TransportListener* wire, std::chrono::milliseconds limit) {
  MakeSharedMemory();
  RT_ASSIGN_OR_RETURN(wire_, wire->Connect(peers_, this));
  Status agreed = Agree(std::chrono::steady_clock::now() + limit);
  neighbours_.clear();
  if (shared_ != nullptr) shared_->CloseSegment();
  return agreed;
}

void RoutedTransport::MakeSharedMemory() {
  std::map<int, PeerMessages*> neighbours;
  for (int peer = 0; peer < world_size(); ++peer) {
    if (!peers_.SharesMemory(peer)) continue;
    neighbours_[peer];
    peer_endings_[peer] = std::make_shared<Ending>(ending_);
    messages_[peer] = std::make_unique<PeerMessages>(peer, peers_.generation, peer_endings_[peer]);
    neighbours.emplace(peer, messages_[peer].get());
  }
  auto shared = SharedMemory::Create(
      neighbours, [this](int peer, const Status& status) { LosePeer(peer, status); });
  if (shared.ok()) {
    shared_ = *std::move(shared);
  } else {
    LogWarning(fmt::format("rank {} does not share memory with the ranks of its host: {}", rank(),
                           shared.status().message()));
  }
}

Status RoutedTransport::Agree(Deadline deadline) {
  for (auto& [peer, neighbour] : neighbours_) {
    if (shared_ != nullptr) neighbour.offer = EncodeOffer(shared_->OfferTo(peer));
  }
  RT_RETURN_IF_ERROR(Exchange(0, &Neighbour::offer, &Neighbour::their_offer, deadline));
  for (auto& [peer, neighbour] : neighbours_) Map(peer, &neighbour);
  RT_RETURN_IF_ERROR(Exchange(1, &Neighbour::mapped, &Neighbour::they_mapped, deadline));
  for (auto& [peer, neighbour] : neighbours_) {
    const bool both = neighbour.memory != nullptr && neighbour.they_mapped[0] == std::byte{1};
    if (both) Start(peer, std::move(*neighbour.memory));
  }
  return OkStatus();
}

void RoutedTransport::Start(int peer, PeerMemory memory) {
  bool left = false;
  {
    MutexLock lock(&mutex_);
    shared_->Start(peer, std::move(memory));
    left = left_.contains(peer);
  }
  if (left) CheckLoss(peer, shared_->OnPeerLeft(peer));
}

void RoutedTransport::Map(int peer, Neighbour* neighbour) {
  const auto offer = DecodeOffer(neighbour->their_offer);
  if (shared_ == nullptr || !offer) return;
  StatusOr<PeerMemory> memory = PeerMemory::Map(*offer);
  if (memory.ok()) {
    neighbour->memory = std::make_unique<PeerMemory>(*std::move(memory));
    neighbour->mapped[0] = std::byte{1};
  } else {
    LogWarning(fmt::format("rank {} does not share memory with rank {}: {}", rank(), peer,
                           memory.status().message()));
  }
}

template <typename Own, typename Theirs>
Status RoutedTransport::Exchange(uint32_t step, Own own, Theirs theirs, Deadline deadline) {
  CompletionQueue queue;
  const MessageLabel label{.tag = {.collective = kRoutingChannel << kChannelShift, .step = step}};
  for (auto& [peer, neighbour] : neighbours_) {
    wire_->Receive(peer, label, neighbour.*theirs, {.queue = &queue});
    wire_->Send(peer, label, neighbour.*own, {.queue = &queue});
  }
  return Await(&queue, 2 * neighbours_.size(), deadline);
}

Status RoutedTransport::Await(CompletionQueue* queue, size_t operations, Deadline deadline) {
  while (operations > 0) {
    Completion completion;
    Status ended;
    if (queue->Next(&completion, NextLookForStop(deadline))) {
      --operations;
      ended = completion.status;
    } else {
      ended = CheckNotStopped();
      if (ended.ok() && std::chrono::steady_clock::now() < deadline) continue;
      if (ended.ok()) {
        ended = {StatusCode::kDeadlineExceeded,
                 fmt::format("rank {} waits in vain for a rank of its host", rank())};
      }
    }
    if (ended.ok()) continue;
    Abort(ended);
    queue->Drain(operations);
    const Status cause = ending_->cause();  // as the wire tells it, which may say more
    return cause.ok() ? ended : cause;
  }
  return OkStatus();
}

// ---- operations ---------------------------------------------------------------------------------

void RoutedTransport::StartSend(int peer, const MessageLabel& label,
                                std::span<const std::byte> bytes, CompletionTarget done) {
  if (shared_ != nullptr) done.queue->UseHelper(shared_);
  if (!Shares(peer)) return wire_->Send(peer, label, bytes, done);
  CheckLoss(peer, messages_.at(peer)->Send(std::make_shared<SendOperation>(
                      peer, label, bytes, done, peer_endings_.at(peer))));
  shared_->Pump(peer);
}

void RoutedTransport::StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                                   CompletionTarget done) {
  if (shared_ != nullptr) done.queue->UseHelper(shared_);
  if (!Shares(peer)) return wire_->Receive(peer, label, buffer, done);
  CheckLoss(peer, messages_.at(peer)->Receive(
                      {.peer = peer, .label = label, .buffer = buffer, .done = done}));
  shared_->Pump(peer);
}

// ---- what the wire learns -----------------------------------------------------------------------

void RoutedTransport::OnPeerLeft(int peer) {
  {
    MutexLock lock(&mutex_);
    left_.insert(peer);
    if (!Shares(peer)) return;  // Start looks again
  }
  CheckLoss(peer, shared_->OnPeerLeft(peer));
}

void RoutedTransport::OnPeerLost(int peer, const Status& cause) {
  const auto ending = peer_endings_.find(peer);
  if (ending == peer_endings_.end() || !ending->second->Set(cause)) return;
  if (Shares(peer)) shared_->StopFrames(peer);
  messages_.at(peer)->End({});
}

// What is in the peers' rings stays there to be read.
void RoutedTransport::OnEnd(const Status& cause) {
  if (!ending_->Set(cause)) return;
  if (shared_ != nullptr) shared_->StopFrames();
  for (const auto& [peer, messages] : messages_) messages->End({});
}

}  // namespace

StatusOr<std::unique_ptr<Transport>> ConnectRouted(TransportListener* wire, const PeerTable& peers,
                                                   std::chrono::milliseconds limit) {
  bool shares = false;
  for (int peer = 0; peer < peers.world_size(); ++peer) shares = shares || peers.SharesMemory(peer);
  if (!shares) return wire->Connect(peers);
  auto transport = std::make_unique<RoutedTransport>(peers);
  RT_RETURN_IF_ERROR(transport->Connect(wire, limit));
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace ringtail
