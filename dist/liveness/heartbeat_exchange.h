// HeartbeatExchange: heartbeats to and from every other rank, over a transport.
//
// For each peer at most one Send and one Receive are under way. A peer that does not take the last
// heartbeat gets no further one, so that nothing piles up; and a Receive is always posted until the
// peer has said that its heartbeat was the last, so that every Send ends and a world can be left
// with nothing pending:
//
//     rank 0   beat 0   beat 1   beat 2, last ............ waits for rank 1's last
//     rank 1        beat 0   beat 1   beat 2   beat 3, last     both have all: Done
//
// Messages: FirstCollective(Channel::kHeartbeat) + sequence as collective, which nothing else has.
// Thread-safety: one thread; Interrupt from any.
#ifndef RINGTAIL_DIST_LIVENESS_HEARTBEAT_EXCHANGE_H_
#define RINGTAIL_DIST_LIVENESS_HEARTBEAT_EXCHANGE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "dist/liveness/heartbeat.h"
#include "dist/transport/transport.h"

namespace ringtail {

MessageLabel HeartbeatLabel(uint64_t sequence);

class HeartbeatExchange {
 public:
  // Posts the first Receives. `transport` must outlive this object.
  explicit HeartbeatExchange(Transport* transport);
  // Waits for what is pending: end the exchange or the world first.
  ~HeartbeatExchange();
  HeartbeatExchange(const HeartbeatExchange&) = delete;
  HeartbeatExchange& operator=(const HeartbeatExchange&) = delete;

  // To every peer that has taken the previous one and has not got a last one.
  void Send(Heartbeat heartbeat);

  struct Event {
    int peer = -1;
    Status world;  // how it has ended; then there is no heartbeat
    // The peer's next one; DataLoss for what is none.
    StatusOr<Heartbeat> heartbeat = Status(StatusCode::kInternal, "no heartbeat");
  };
  // False if there is none by `deadline`, after an Interrupt, or when the exchange is Done.
  bool Next(Event* event, Deadline deadline);
  void Interrupt();

  // The last heartbeat has been sent to and has come from every peer.
  bool Done() const;

 private:
  using Bytes = std::array<std::byte, kHeartbeatBytes>;

  struct Peer {
    Bytes outgoing, incoming;
    uint64_t sent = 0, received = 0;
    bool sending = false, receiving = false;
    bool told_last = false, heard_last = false;
  };

  void PostReceive(int peer);
  StatusOr<Heartbeat> Take(Peer* peer);

  Transport* const transport_;
  CompletionQueue queue_{CompletionQueue::Owner::kOnlyWaits};
  std::vector<Peer> peers_;  // by rank; that of this rank is not used
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_HEARTBEAT_EXCHANGE_H_
