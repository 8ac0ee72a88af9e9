// HeartbeatExchange: heartbeats to and from every other rank, over a transport.
//
// There are two lanes to each peer. Heartbeats on the urgent lane say that a rank lives, and arrive
// at once whatever else is under way (transport.h). Heartbeats on the data lane say that data can
// arrive: they wait behind data, but then data arrives.
//
// For each peer and lane at most one Send and one Receive are under way. A peer that does not take
// the last heartbeat gets no further one, so that nothing piles up; and a Receive is always posted
// until the peer has said that its heartbeat was the last, so that every Send ends and a world can
// be left with nothing pending:
//
//     rank 0   beat 0   beat 1   beat 2, last ............ waits for rank 1's last
//     rank 1        beat 0   beat 1   beat 2   beat 3, last     both have all: Done
//
// A peer whose messages fail is lost, and gets and is expected to send nothing more.
//
// Messages: FirstCollective of the lane's channel + sequence as collective, which nothing else has.
// Thread-safety: one thread; Interrupt from any.
#ifndef RINGTAIL_DIST_LIVENESS_HEARTBEAT_EXCHANGE_H_
#define RINGTAIL_DIST_LIVENESS_HEARTBEAT_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "dist/liveness/heartbeat.h"
#include "dist/transport/transport.h"

namespace ringtail {

enum class HeartbeatLane { kUrgent, kData };
inline constexpr int kHeartbeatLanes = 2;

MessageLabel HeartbeatLabel(HeartbeatLane lane, uint64_t sequence);

class HeartbeatExchange {
 public:
  // Posts the first Receives. `transport` must outlive this object.
  explicit HeartbeatExchange(Transport* transport);
  // Waits for what is pending: end the exchange or the world first.
  ~HeartbeatExchange();
  HeartbeatExchange(const HeartbeatExchange&) = delete;
  HeartbeatExchange& operator=(const HeartbeatExchange&) = delete;

  // By `lane`, to every peer that has taken the previous one there and has not got a last one.
  // Among data only to those that no data has gone to since the last call: it says as much.
  void Send(HeartbeatLane lane, Heartbeat heartbeat);

  struct Event {
    int peer = -1;
    HeartbeatLane lane = HeartbeatLane::kUrgent;
    Status lost;  // why nothing comes from this peer, or goes to it, any more; no heartbeat then
    // The peer's next one; DataLoss for what is none.
    StatusOr<Heartbeat> heartbeat = Status(StatusCode::kInternal, "no heartbeat");
  };
  // False if there is none by `deadline`, after an Interrupt, or when the exchange is Done.
  bool Next(Event* event, Deadline deadline);
  void Interrupt();

  // The last heartbeat has been sent to and has come from every peer that is not lost.
  bool Done() const;
  bool Lost(int peer) const {
    return links_[IndexOf(peer, HeartbeatLane::kUrgent)].lost ||
           links_[IndexOf(peer, HeartbeatLane::kData)].lost;
  }
  // The peers with which it is not done.
  std::vector<int> Open() const;

 private:
  struct Link {
    std::vector<std::byte> outgoing, incoming;
    uint64_t sent = 0, received = 0;
    uint64_t data_sent = 0;  // Traffic::sent at the last call of Send
    bool sending = false, receiving = false;
    bool told_last = false, heard_last = false;
    bool lost = false;
  };

  // A link's index: kHeartbeatLanes for each rank; those of this rank are not used.
  static size_t IndexOf(int peer, HeartbeatLane lane) {
    return static_cast<size_t>(peer) * kHeartbeatLanes + static_cast<size_t>(lane);
  }
  static int PeerOf(size_t index) { return static_cast<int>(index / kHeartbeatLanes); }
  static HeartbeatLane LaneOf(size_t index) {
    return static_cast<HeartbeatLane>(index % kHeartbeatLanes);
  }
  void PostReceive(size_t index);
  StatusOr<Heartbeat> Take(Link* link);

  Transport* const transport_;
  CompletionQueue queue_{CompletionQueue::Owner::kOnlyWaits};
  std::vector<Link> links_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_HEARTBEAT_EXCHANGE_H_
