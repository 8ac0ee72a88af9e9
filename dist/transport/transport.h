// Transport: bytes between the ranks of a world. It knows nothing of sums, plans or gradients.
//
//   rank 0                                    rank 1
//   transport.Send(1, label, bytes, done)     transport.Receive(0, label, memory, done)
//   queue.Next(&completion, deadline)         queue.Next(&completion, deadline)
//
// Send and Receive only start an operation, and never wait. Its result comes out of the
// CompletionQueue that `done` names, so that one thread can have hundreds of operations under way
// and continue with whichever ends first.
//
// Matching: a message meets the Receive from that peer with the same tag, in any order, posted
// earlier or later. A tag is used once in each direction between two ranks.
//
// Memory. A Send reads its bytes in place, and a Receive writes to their destination: both spans
// belong to the transport from the call until the completion is in the queue, and not a moment
// longer, errors included. A completed Send says that its memory is free again, not that the peer
// has the message; it may, but need not, complete before the peer has posted its Receive.
//
// A message may be combined with what is in the memory instead of replacing it: added, for a sum.
// It is then never stored in between, and every byte is touched once.
//
// Early messages: a message may arrive before its Receive is posted. Between two ranks at most a
// fixed number of such bytes may be under way or in memory; the rest waits at the sender until it
// is asked for. A message whose Receive is posted always gets through, whatever else waits: ranks
// that post all they need cannot block each other.
//
// Urgent messages (IsUrgent) never wait behind others: between hosts they have a connection of
// their own, so that a slow link delays them by what is on the link and not by megabytes in the
// queues of both ends. They are for a few bytes now and then that say which ranks live; so is
// Abort.
//
// Errors. The first one is final and ends the transport of this rank: a peer that is lost, a
// message whose length or check is not what its Receive expects, a corrupt frame, Abort. From then
// on every operation, pending or new, completes with that status; the peers are told, and end
// theirs. An operation's status names the operation, the peer, the tag and the cause:
//   "receiving 4096 bytes from rank 2 (collective 7, step 0, segment 3): <cause>"
// A world does not recover from an error: to continue, create a new world.
//
// Tolerance. A rank that can continue without some of the others says so (TolerateLosses). From
// then on a peer is lost by itself:
//
//   rank 2 dies, aborts, sends nonsense,      operations with rank 2, pending or new, complete with
//   leaves while this rank waits for it, or   that cause; all others continue; OnPeerLost, once
//   this rank gives it up (GiveUp)
//   Abort of this rank                        the end of its part in the world, as ever
//   a peer gives this rank up                 the same: "rank 0 has given up this rank: <cause>"
//
// A lost peer does not come back. Each rank is tolerant for itself: a peer that is not yet so ends
// with the first loss, and is then lost, too. Ranks that agree on when they begin, by a Barrier
// after which nothing needs all, lose no other rank.
//
// Thread-safety: any thread. Destruction: once all operations have completed; a peer that still
// waits for this rank then gets Unavailable.
#ifndef RINGTAIL_DIST_TRANSPORT_TRANSPORT_H_
#define RINGTAIL_DIST_TRANSPORT_TRANSPORT_H_

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/status.h"
#include "dist/transport/completion_queue.h"

namespace ringtail {

// Identifies a message within the life of a world. A transport lives for one generation of the job
// (a world that is formed anew gets the next number), so the generation is not part of the tag;
// where messages of an older one can still arrive, each carries it and is refused.
struct MessageTag {
  // Sequence number of the collective, the same on every rank. The upper 16 bits tell apart what is
  // counted separately (dist/channel.h).
  uint64_t collective = 0;
  uint32_t step = 0;     // index among the steps from this sender to this receiver
  uint32_t segment = 0;  // index among the parts of the step

  auto operator<=>(const MessageTag&) const = default;  // NOLINT(modernize-use-nullptr): no pointer
};

// Values of the upper 16 bits of MessageTag::collective that a transport knows (dist/channel.h has
// the others).
inline constexpr int kChannelShift = 48;
inline constexpr uint64_t kHeartbeatChannel = 15, kUrgentChannel = 16;
inline constexpr uint64_t kRoutingChannel = 17;  // routed_transport.h
inline bool IsUrgent(const MessageTag& tag) {
  return tag.collective >> kChannelShift == kUrgentChannel;
}
// Whether a message is part of the work, and not only a sign of life.
inline bool IsData(const MessageTag& tag) {
  return !IsUrgent(tag) && tag.collective >> kChannelShift != kHeartbeatChannel;
}

struct MessageLabel {
  MessageTag tag;
  // Says what the message is part of; must be equal at both ends. Ranks that mean different things
  // by the same tag get an error and not each other's bytes.
  uint64_t check = 0;
};

// Where the completion goes, and the number by which the caller knows the operation.
struct CompletionTarget {
  CompletionQueue* queue = nullptr;
  uint64_t id = 0;
};

// Combines `bytes` of a message with `memory`, in place. A call gets whole elements, but not always
// the whole message; `message` is aligned for each element. Called once for each part, on any
// thread.
using Combine = void (*)(std::byte* memory, const std::byte* message, size_t bytes);

// The destination of a message.
struct ReceiveBuffer {
  std::span<std::byte> bytes;
  Combine combine = nullptr;  // none: the message replaces what is there

  ReceiveBuffer() = default;
  template <std::convertible_to<std::span<std::byte>> Bytes>  // not a ReceiveBuffer
  // NOLINTNEXTLINE(google-explicit-constructor, bugprone-forwarding-reference-overload)
  ReceiveBuffer(Bytes&& memory, Combine how = nullptr)
      : bytes(std::forward<Bytes>(memory)), combine(how) {}
};

// What has passed between this rank and a peer so far, in pieces of messages: each piece of a large
// one counts, so that two looks show whether it moves. On a slow wire pieces are small
// (grpc_stream.h).
struct Traffic {
  uint64_t arrived = 0;             // of anything but urgent messages
  uint64_t sent = 0, received = 0;  // of data
};

// Told of each peer that a tolerant transport loses.
class PeerLossObserver {
 public:
  virtual ~PeerLossObserver() = default;
  // Once for each, on any thread, without a lock of the transport held, and not once the transport
  // has ended. What was pending with the peer completes at about the same time: a Send when the
  // wire has let go of its memory.
  virtual void OnPeerLost(int peer, const Status& cause) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  // `peer` is another rank of the world. Empty messages are messages, too.
  void Send(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
            CompletionTarget done) {
    CheckPeer(peer);
    StartSend(peer, label, bytes, done);
  }
  void Receive(int peer, const MessageLabel& label, ReceiveBuffer buffer, CompletionTarget done) {
    CheckPeer(peer);
    StartReceive(peer, label, buffer, done);
  }

  Traffic traffic(int peer) const {  // cost: some atomics
    CheckPeer(peer);
    return TrafficWith(peer);
  }

  // Ends this rank's part in the world with `cause`, and tells the peers. The first cause stays.
  virtual void Abort(const Status& cause) = 0;
  // That cause; OK while this rank takes part.
  virtual Status EndCause() const = 0;

  // From now on a lost peer does not end this rank's part in the world. Once; `observer` may be
  // null. Unimplemented, and nothing has changed, if this transport cannot.
  virtual Status TolerateLosses(std::shared_ptr<PeerLossObserver> observer);
  // Why nothing can be exchanged with the peer any more: it is lost, or this rank's part has ended.
  // OK: it can.
  Status LossOf(int peer) const {
    CheckPeer(peer);
    return CauseWith(peer);
  }
  // The peer is lost with `cause`: it has been found dead, or breaks the rules. If it still hears
  // anything, it is told, and ends. In a transport that does not tolerate losses: Abort.
  void GiveUp(int peer, const Status& cause) {
    CheckPeer(peer);
    LosePeer(peer, cause);
  }

 private:
  // Send, Receive and traffic, for a peer that exists.
  virtual void StartSend(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                         CompletionTarget done) = 0;
  virtual void StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                            CompletionTarget done) = 0;
  virtual Traffic TrafficWith(int peer) const = 0;
  // LossOf and GiveUp, for a peer that exists.
  virtual Status CauseWith(int /*peer*/) const { return EndCause(); }
  virtual void LosePeer(int peer, const Status& cause);

  void CheckPeer(int peer) const;
};

// ---- for implementations ------------------------------------------------------------------------

enum class Direction { kSend, kReceive };

// The number of a collective as messages show it: without its channel.
inline uint64_t ShownCollective(uint64_t collective) {
  return collective & ((uint64_t{1} << kChannelShift) - 1);
}

// "receiving 4096 bytes from rank 2 (collective 7, step 0, segment 3)"
std::string DescribeOperation(Direction direction, int peer, const MessageTag& tag, size_t bytes);

// OK if a message of `sent_bytes` under `sent` is what a Receive of `expected_bytes` under
// `expected` wants; InvalidArgument with both lengths, FailedPrecondition with both checks.
Status CheckMatch(const MessageLabel& sent, size_t sent_bytes, const MessageLabel& expected,
                  size_t expected_bytes);

// The cause of an abort as the peers of `rank` see it: "rank 2 stopped: <cause>".
Status AbortSeenByPeer(int rank, const Status& cause);
// Why the world ends for a peer that `rank` has given up.
Status GivenUpBy(int rank, const Status& cause);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_TRANSPORT_H_
