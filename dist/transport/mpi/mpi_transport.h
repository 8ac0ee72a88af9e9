// The transport over MPI: for clusters whose fast network speaks it. Started by mpirun (or srun with a
// PMI that MPI understands), which numbers the ranks; Ringtail's rank must be the same.
//
//   Send    -> PeerMessages --TakeFrames--> chunk -> MPI_Isend   \  "rt-mpi": the only thread that
//   Receive -> PeerMessages <--OnFrames---- chunk <- MPI_Irecv   /  calls MPI (mpi_engine.h)
//
// Frames, credit, matching and errors are those of every other wire (frames/peer_messages.h); MPI
// carries chunks of them (mpi_lane.h). Ranks of one host share memory beside it (routed_transport.h).
//
// What MPI lets us know of a failure (measured: README.md, "How it ends"):
//
//   rank 1             who names it                     survivors                     exit code
//   aborts, hangs, is  all others, as over gRPC         checkpoint, then end          75
//   stopped, cut off   (kAbort, ProgressMonitor)
//   dies               mpirun: "process rank 1 ...      SIGTERM at once, SIGKILL 2 s  137
//                      exited on signal 9 (Killed)"     later: no checkpoint
//   dies, mpirun       all others, when it has been     checkpoint, then end          0 of mpirun,
//   --enable-recovery  silent for dist.hang_timeout_s                                 75 of ranks
//
// MPI says nothing to us of a dead peer: what is sent to it is lost, and no receive fails. So no rank
// can name it at once, as over gRPC, where the kernel reports a broken connection; and mpirun ends the
// job. So a world over MPI does not outlive a rank (Transport::TolerateLosses: Unimplemented).
// MPI_Init waits for all ranks without a limit of its own; after connect_timeout we give up, and the
// process has to end. Leaving waits for the other ranks, MpiLimits::leave at most. MPI begins once in
// the life of a process, so there is one world over it.
// Cost: one copy at each end; about 1.1 MiB of memory for each peer.
// Thread-safety and errors: transport.h.
#ifndef RINGTAIL_DIST_TRANSPORT_MPI_MPI_TRANSPORT_H_
#define RINGTAIL_DIST_TRANSPORT_MPI_MPI_TRANSPORT_H_

#include <chrono>
#include <memory>
#include <string>

#include "dist/transport/mpi/mpi_port.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

struct MpiLimits {
  std::chrono::milliseconds connect = TransportOptions().connect_timeout;
  // MPI ends in order only if all ranks leave it: for how long the first waits for the last.
  std::chrono::milliseconds leave{60'000};
};

// `address`: of this host. MPI knows by itself where the ranks are; to us it says which are on one
// host. Connect fails with FailedPrecondition if MPI cannot be used or counts ranks otherwise.
std::unique_ptr<TransportListener> ListenMpi(const std::string& address, const MpiLimits& limits,
                                             MpiPortOpener open);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_MPI_MPI_TRANSPORT_H_
