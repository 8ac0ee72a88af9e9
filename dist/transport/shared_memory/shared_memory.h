// SharedMemory: moves the frames of ranks of one host without a socket.
//
//   rank 0, its segment (a memfd)                  rank 1, its segment
//   +------+-------------+-------------+           +------+-------------+-------------+
//   | bell | ring from 1 | ring from 2 |           | bell | ring from 0 | ring from 2 |
//   +------+-------------+-------------+           +------+-------------+-------------+
//      ^          ^                                   ^          |
//      +----------+------ mapped by rank 1 -----+     |          v rank 1 reads
//                                               |     |      PeerMessages::OnFrames: copied to
//   rank 0 in Send: PeerMessages::TakeFrames ---|-----+      its Receive
//   copied into "ring from 0", bell rung -------|-----^
//
// Two copies, and in the best case no system call: the ring is small enough to stay in the cache
// between them. Frames and credit are those of a stream (peer_messages.h), but payloads have no
// checksum. Abort, the loss of a peer and its goodbye are the wire's business (routed_transport.h).
//
// Each rank offers its segment to its neighbours; one that cannot be mapped is not used. Once all
// pairs have agreed, no rank has the segment open any more: only mappings are left, which end with
// their processes.
//
// Which thread does the work. Sending: the thread that calls Send, as far as there is room in the
// ring. Receiving, and sending what had no room: the thread that the bell wakes, which is the one
// that waits in CompletionQueue::Next, if there is one, and otherwise "rt-shm", this object's own.
// A thread that has waited there is expected back: what arrives meanwhile waits for it, 2 to 4 ms
// at most.
//
// Thread-safety: any thread. Cost: 64 KiB and a ring of kRingBytes of address space for each peer
// of the host; memory for those that have ever sent anything.
#ifndef RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_MEMORY_H_
#define RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/transport/completion_queue.h"
#include "dist/transport/frames/peer_messages.h"
#include "dist/transport/shared_memory/doorbell.h"
#include "dist/transport/shared_memory/shared_memory_offer.h"
#include "dist/transport/shared_memory/shared_ring.h"
#include "dist/transport/shared_memory/shared_segment.h"

namespace ringtail {

// A peer's offer, mapped: its bell, and its ring from us.
struct PeerMemory {
  // DataLoss if the offer makes no sense, an error of the system if it cannot be mapped.
  static StatusOr<PeerMemory> Map(const SharedMemoryOffer& offer);

  SharedMapping first_page, slot;
};

class SharedMemory : public CompletionHelper {
 public:
  // Told of errors that end the world, or lose the peer. Called on any thread, without a lock held.
  using OnError = std::function<void(int peer, const Status& status)>;

  // `messages` by peer: those of the same host. They must outlive Stop.
  static StatusOr<std::shared_ptr<SharedMemory>> Create(
      const std::map<int, PeerMessages*>& messages, OnError on_error);
  ~SharedMemory() override;

  // ---- agreeing with each peer
  SharedMemoryOffer OfferTo(int peer) const RT_EXCLUDES(mutex_);
  // Both have mapped: from now on frames of this pair go this way. Once for each peer.
  void Start(int peer, PeerMemory memory);
  // No peer has to map any more.
  void CloseSegment() RT_EXCLUDES(mutex_);

  // ---- frames
  bool Carries(int peer) const;
  // Writes the frames that the peer's messages have. To be called whenever there may be more.
  void Pump(int peer);
  // The peer has left: reads what is still in its ring, and tells its messages.
  Status OnPeerLeft(int peer);
  // Reads what is in the peer's ring, or in all, once more; nothing is written or read there any
  // more. Returns when no thread writes.
  void StopFrames(int peer);
  void StopFrames();
  // Ends the thread; no thread is in this object any more.
  void Stop() RT_EXCLUDES(mutex_);

  // ---- for CompletionQueue
  uint32_t Moment() override { return Rung(*bell_); }
  bool Help(uint32_t moment, Deadline deadline) override RT_EXCLUDES(mutex_);
  void Interrupt() override { WakeAtBell(bell_, kCaller); }

 private:
  // Held by one thread at a time; a thread that does not get it may continue.
  class Turn {
   public:
    bool TryTake() { return !taken_.exchange(true, std::memory_order_acquire); }
    void Take() {
      while (!TryTake()) taken_.wait(true);
    }
    void GiveBack() {
      taken_.store(false, std::memory_order_release);
      taken_.notify_one();
    }

   private:
    std::atomic<bool> taken_ = false;
  };

  struct Link {
    PeerMessages* messages = nullptr;
    uint64_t offset = 0;  // of the ring from the peer, in our segment
    std::atomic<bool> starting = false;
    std::atomic<bool> started = false;  // what follows stays as it is
    std::atomic<bool> broken = false;   // the peer has written nonsense
    std::atomic<bool> stopped = false;  // StopFrames
    SharedMapping our_slot;
    PeerMemory peer_memory;
    Doorbell* bell = nullptr;  // the peer's

    Turn reading;
    RingReader reader;
    Turn writing;
    std::atomic<bool> wanted = false;  // Pump was called, perhaps while another thread wrote
    std::atomic<bool> waits_for_room = false;
    RingWriter writer;
  };

  SharedMemory(SharedSegment segment, OnError on_error)
      : on_error_(std::move(on_error)), segment_(std::move(segment)) {}
  static Doorbell* BellIn(const SharedMapping& first_page);
  void Run();  // body of thread_
  void WatchCaller() RT_EXCLUDES(mutex_);
  bool Poll();
  bool Pull(int peer, Link* link);
  StatusOr<bool> ReadAll(int peer, Link* link);  // true: there was something
  void Pump(int peer, Link* link);
  Status WriteAll(Link* link);

  const OnError on_error_;
  SharedMapping first_page_;
  Doorbell* bell_ = nullptr;
  std::map<int, std::unique_ptr<Link>> links_;  // by peer; the map itself does not change
  int looks_ = 0;                               // of a thread in Help, before it sleeps
  std::atomic<bool> stopped_ = false;
  std::thread thread_;

  mutable Mutex mutex_;
  ConditionVariable helper_left_;
  bool helping_ RT_GUARDED_BY(mutex_) = false;  // a thread is in Help
  bool several_ RT_GUARDED_BY(mutex_) = false;  // more than one thread has wanted to be
  uint32_t visits_ RT_GUARDED_BY(mutex_) = 0;   // calls of Help
  std::optional<SharedSegment> segment_ RT_GUARDED_BY(mutex_);
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_MEMORY_H_
