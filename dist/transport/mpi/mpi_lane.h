// MpiLane: one of the two ways between this rank and a peer over MPI (0: data, 1: urgent messages).
// Chunks of frames go to and fro between a few pieces of memory:
//
//   free ──TakeFrames, MPI_Isend──> sending ──finished──> free
//   arriving, MPI_Irecv under way ──finished──> TakeArrived ──frames read──> Receive: arriving again
//
// Per direction there are kChunksAhead chunks of 256 KiB of data, 4 KiB on the urgent lane. So an
// urgent message waits for no more than two chunks of data.
//
// Thread-safety: none; of the thread rt-mpi. Errors: MPI's, Unavailable. Cost: one copy when a chunk
// is written, one when its frames are read; 1.1 MiB of memory for both lanes of a peer.
#ifndef RINGTAIL_DIST_TRANSPORT_MPI_MPI_LANE_H_
#define RINGTAIL_DIST_TRANSPORT_MPI_MPI_LANE_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/status.h"
#include "dist/transport/frames/peer_messages.h"
#include "dist/transport/mpi/mpi_port.h"

namespace ringtail {

inline constexpr int kMpiLanes = 2, kUrgentMpiLane = 1;

// Memory of one chunk. MPI's context of the operation that sends or receives it.
class MpiChunk {
 public:
  explicit MpiChunk(size_t capacity) : memory_(capacity) {}
  std::span<std::byte> Empty();  // all of the memory, for the next operation
  void Append(std::span<const std::byte> bytes);
  std::span<const std::byte> used() { return {memory_.data(), used_}; }

  void Finish(size_t received) {
    finished_ = true;
    used_ = received;
  }
  bool finished() const { return finished_; }

 private:
  AlignedBuffer memory_;
  size_t used_ = 0;
  bool finished_ = false;
};

class MpiLane {
 public:
  MpiLane(int peer, int number, PeerMessages* messages)
      : peer(peer), messages(messages), number_(number) {}

  const int peer;
  PeerMessages* const messages;

  // Once: `port` must outlive the lane's operations.
  Status Start(MpiPort* port);
  // Sends what there is to say, as far as there are free chunks. `any`: something moved.
  Status Write(bool* any);
  // Whether the last Write has left nothing to say, and MPI has taken everything.
  bool AllWritten() const { return sending_.empty() && !free_.empty(); }

  // The next chunk in the order of the sender; null: it has not come. Receive gives it back.
  MpiChunk* TakeArrived();
  Status Receive(MpiChunk* chunk);

 private:
  const int number_;
  MpiPort* port_ = nullptr;
  std::vector<std::unique_ptr<MpiChunk>> chunks_;  // all
  std::vector<MpiChunk*> free_;
  std::deque<MpiChunk*> sending_, arriving_;  // in the order in which they were started
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_MPI_MPI_LANE_H_
