// A world over MPI: for clusters whose fast network speaks it. Started by mpirun (or srun with a
// PMI that MPI understands), which numbers the ranks; Ringtail's rank must be the same.
//
//   Send    -> PeerMessages --TakeFrames--> chunk -> MPI_Isend   \  "rt-mpi": the only thread that
//   Receive -> PeerMessages <--OnFrames---- chunk <- MPI_Irecv   /  calls MPI
//
// Frames, credit, matching and errors are those of every other wire (frames/peer_messages.h); MPI
// carries chunks of them: up to 256 KiB of data, 4 KiB on the lane of urgent messages. Per peer and
// lane two receives of one chunk each are posted, and at most two chunks are on their way, so that
// an urgent message waits for no more than two chunks of the other lane.
//
// MPI wakes no thread: rt-mpi polls. While data moves it polls at once; else it sleeps an eighth of
// the time that nothing has moved, 10 us to 1 ms, and is woken by Send and Receive. So a message
// that arrives after a pause may wait for 1 ms until it is read.
//
// What MPI does not let us do. A dead process: mpirun ends all others itself, and says which died;
// with srun --no-kill, and for a stopped process, the ProgressMonitor names the rank as over gRPC.
// MPI_Init waits for all ranks without a limit of its own; after connect_timeout we give up, and
// the process has to end. Leaving waits for the other ranks, leave_timeout at most. MPI begins once
// in the life of a process, so there is one world over it.
// Cost: one copy at each end; about 1.1 MiB of memory for each peer.
// Thread-safety and errors: transport.h.
#ifndef RINGTAIL_DIST_TRANSPORT_MPI_MPI_TRANSPORT_H_
#define RINGTAIL_DIST_TRANSPORT_MPI_MPI_TRANSPORT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/transport/mpi/mpi_port.h"
#include "dist/transport/transport.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

struct MpiWorld {
  int rank = 0, world_size = 1;
  uint32_t generation = 0;
  // By rank: equal for ranks of one host, between which payloads need no checksum. Empty: not
  // known.
  std::vector<std::string> hosts;
  std::chrono::milliseconds connect_timeout{30'000};
  // MPI ends in order only if all ranks leave it: for how long the first waits for the last.
  std::chrono::milliseconds leave_timeout{60'000};
};

// Called by every rank. FailedPrecondition if MPI cannot be used or counts ranks otherwise,
// DeadlineExceeded if it has not begun within connect_timeout.
// `observer`, if any, must outlive the transport.
StatusOr<std::unique_ptr<Transport>> ConnectMpi(const MpiWorld& world, MpiPortOpener open,
                                                TransportObserver* observer = nullptr);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_MPI_MPI_TRANSPORT_H_
