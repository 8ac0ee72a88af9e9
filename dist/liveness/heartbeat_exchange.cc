#include "dist/liveness/heartbeat_exchange.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "dist/channel.h"

namespace ringtail {
namespace {

constexpr uint64_t kCheck = 0x3248'5452;  // "RTH2"
constexpr uint64_t kInterrupt = UINT64_MAX;

// The id of an operation: of which link, and which.
uint64_t SendId(size_t link) { return 2 * link; }
uint64_t ReceiveId(size_t link) { return 2 * link + 1; }

}  // namespace

MessageLabel HeartbeatLabel(HeartbeatLane lane, uint64_t sequence) {
  const Channel channel(lane == HeartbeatLane::kUrgent ? kUrgentChannel : kHeartbeatChannel);
  return {.tag = {.collective = channel.FirstCollective() + sequence}, .check = kCheck};
}

HeartbeatExchange::HeartbeatExchange(Transport* transport)
    : transport_(transport),
      links_(static_cast<size_t>(transport->world_size()) * kHeartbeatLanes) {
  for (size_t index = 0; index < links_.size(); ++index) {
    if (PeerOf(index) != transport_->rank()) PostReceive(index);
  }
}

HeartbeatExchange::~HeartbeatExchange() {
  size_t pending = 0;
  for (const Link& link : links_) {
    pending += static_cast<size_t>(link.sending) + static_cast<size_t>(link.receiving);
  }
  queue_.Drain(pending, [](const Completion& completion) { return completion.id != kInterrupt; });
}

void HeartbeatExchange::PostReceive(size_t index) {
  Link& link = links_[index];
  link.receiving = true;
  link.incoming.resize(HeartbeatBytes(transport_->world_size()));
  transport_->Receive(PeerOf(index), HeartbeatLabel(LaneOf(index), link.received), link.incoming,
                      {.queue = &queue_, .id = ReceiveId(index)});
}

void HeartbeatExchange::Send(HeartbeatLane lane, Heartbeat heartbeat) {
  for (int peer = 0; peer < transport_->world_size(); ++peer) {
    const size_t index = IndexOf(peer, lane);
    Link& link = links_[index];
    if (peer == transport_->rank() || link.sending || link.told_last || link.lost) continue;
    if (lane == HeartbeatLane::kData) {
      const uint64_t before = std::exchange(link.data_sent, transport_->traffic(peer).sent);
      if (before != link.data_sent && !heartbeat.last) continue;
    }
    heartbeat.sequence = link.sent++;
    link.outgoing = EncodeHeartbeat(heartbeat);
    link.told_last = heartbeat.last;
    link.sending = true;
    transport_->Send(peer, HeartbeatLabel(lane, heartbeat.sequence), link.outgoing,
                     {.queue = &queue_, .id = SendId(index)});
  }
}

bool HeartbeatExchange::Next(Event* event, Deadline deadline) {
  Completion completion;
  while (queue_.Next(&completion, deadline) && completion.id != kInterrupt) {
    const size_t index = completion.id / 2;
    Link& link = links_[index];
    const bool received = completion.id == ReceiveId(index);
    (received ? link.receiving : link.sending) = false;
    event->peer = PeerOf(index);
    event->lane = LaneOf(index);
    event->lost = completion.status;
    if (!completion.status.ok()) {
      link.lost = true;
      return true;
    }
    if (!received && Done()) return false;
    if (!received) continue;
    event->heartbeat = Take(&link);
    if (event->heartbeat.ok() && !link.heard_last) PostReceive(index);
    return true;
  }
  return false;
}

StatusOr<Heartbeat> HeartbeatExchange::Take(Link* link) {
  RT_ASSIGN_OR_RETURN(Heartbeat heartbeat, DecodeHeartbeat(link->incoming));
  if (heartbeat.sequence != link->received) {
    return DataLoss(fmt::format("number {} came as number {}", heartbeat.sequence, link->received));
  }
  ++link->received;
  link->heard_last = heartbeat.last;
  return heartbeat;
}

void HeartbeatExchange::Interrupt() { queue_.Put({.id = kInterrupt, .status = {}}); }

bool HeartbeatExchange::Done() const { return Open().empty(); }

std::vector<int> HeartbeatExchange::Open() const {
  std::vector<int> open;
  for (size_t index = 0; index < links_.size(); ++index) {
    const Link& link = links_[index];
    const int peer = PeerOf(index);
    const bool done = link.lost || (link.told_last && link.heard_last && !link.sending);
    if (peer == transport_->rank() || done) continue;
    if (open.empty() || open.back() != peer) open.push_back(peer);
  }
  return open;
}

}  // namespace ringtail
