#include "dist/liveness/heartbeat_exchange.h"

#include "dist/channel.h"

#include <fmt/format.h>

#include <chrono>

#include "core/check.h"

namespace ringtail {
namespace {

// A transport that has ended completes all operations at once; this long is for machines that do
// not get to it.
constexpr std::chrono::minutes kDrainLimit{5};
constexpr uint64_t kCheck = 0x3148'5452;  // "RTH1"
constexpr uint64_t kInterrupt = UINT64_MAX;

// The id of an operation: whose, and which.
uint64_t SendId(int peer) { return 2 * static_cast<uint64_t>(peer); }
uint64_t ReceiveId(int peer) { return 2 * static_cast<uint64_t>(peer) + 1; }

}  // namespace

MessageLabel HeartbeatLabel(uint64_t sequence) {
  return {.tag = {.collective = FirstCollective(Channel::kHeartbeat) + sequence}, .check = kCheck};
}

HeartbeatExchange::HeartbeatExchange(Transport* transport)
    : transport_(transport), peers_(transport->world_size()) {
  for (int peer = 0; peer < transport_->world_size(); ++peer) {
    if (peer != transport_->rank()) PostReceive(peer);
  }
}

HeartbeatExchange::~HeartbeatExchange() {
  size_t pending = 0;
  for (const Peer& peer : peers_) {
    pending += static_cast<size_t>(peer.sending) + static_cast<size_t>(peer.receiving);
  }
  const Deadline deadline = std::chrono::steady_clock::now() + kDrainLimit;
  while (pending > 0) {
    Completion completion;
    RT_CHECK(queue_.Next(&completion, deadline), "a transport that has ended completes all");
    if (completion.id != kInterrupt) --pending;
  }
}

void HeartbeatExchange::PostReceive(int peer) {
  peers_[peer].receiving = true;
  transport_->Receive(peer, HeartbeatLabel(peers_[peer].received), peers_[peer].incoming,
                      {.queue = &queue_, .id = ReceiveId(peer)});
}

void HeartbeatExchange::Send(Heartbeat heartbeat) {
  for (int i = 0; i < transport_->world_size(); ++i) {
    Peer& peer = peers_[i];
    if (i == transport_->rank() || peer.sending || peer.told_last) continue;
    heartbeat.sequence = peer.sent++;
    peer.outgoing = EncodeHeartbeat(heartbeat);
    peer.told_last = heartbeat.last;
    peer.sending = true;
    transport_->Send(i, HeartbeatLabel(heartbeat.sequence), peer.outgoing,
                     {.queue = &queue_, .id = SendId(i)});
  }
}

bool HeartbeatExchange::Next(Event* event, Deadline deadline) {
  Completion completion;
  while (queue_.Next(&completion, deadline) && completion.id != kInterrupt) {
    const int index = static_cast<int>(completion.id / 2);
    Peer& peer = peers_[index];
    const bool received = completion.id == ReceiveId(index);
    (received ? peer.receiving : peer.sending) = false;
    event->peer = index;
    event->world = completion.status;
    if (!completion.status.ok()) return true;
    if (!received && Done()) return false;
    if (!received) continue;
    event->heartbeat = Take(&peer);
    if (event->heartbeat.ok() && !peer.heard_last) PostReceive(index);
    return true;
  }
  return false;
}

StatusOr<Heartbeat> HeartbeatExchange::Take(Peer* peer) {
  RT_ASSIGN_OR_RETURN(const Heartbeat heartbeat, DecodeHeartbeat(peer->incoming));
  if (heartbeat.sequence != peer->received) {
    return DataLoss(fmt::format("number {} came as number {}", heartbeat.sequence, peer->received));
  }
  ++peer->received;
  peer->heard_last = heartbeat.last;
  return heartbeat;
}

void HeartbeatExchange::Interrupt() { queue_.Put({.id = kInterrupt, .status = {}}); }

bool HeartbeatExchange::Done() const {
  for (int i = 0; i < transport_->world_size(); ++i) {
    const Peer& peer = peers_[i];
    if (i != transport_->rank() && (!peer.told_last || !peer.heard_last || peer.sending)) {
      return false;
    }
  }
  return true;
}

}  // namespace ringtail
