// MpiEngine: one thread, "rt-mpi", that makes all progress of an MpiTransport. Every call of MPI is its.
//
//   any thread          rt-mpi: Run
//   AwaitBegin <──────  open MPI, compare ranks, post receives (else the transport is refused)
//   Wake ────────────>  until this rank has ended, and the others have been told:
//   EndWith ─────────>    Poll what MPI has finished; read what has come, write what there is to say
//                         nothing moved: sleep
//                       all have left in peace: MPI_Finalize
//
// MPI wakes no thread: rt-mpi polls. While data moves it polls at once; else it sleeps an eighth of
// the time that nothing has moved, 10 us to 1 ms, and is woken by Send and Receive. So a message that
// arrives after a pause may wait for 1 ms until it is read.
//
// It is shared by the transport and its thread, and lives as long as the longer of them: the thread
// may stay in MPI_Init, which has no limit, after the transport has given up.
// Thread-safety: any thread; Run on one of its own.
#ifndef RINGTAIL_DIST_TRANSPORT_MPI_MPI_ENGINE_H_
#define RINGTAIL_DIST_TRANSPORT_MPI_MPI_ENGINE_H_

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/transport/frames/peer_messages.h"
#include "dist/transport/mpi/mpi_lane.h"
#include "dist/transport/mpi/mpi_port.h"
#include "dist/transport/mpi/mpi_transport.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

class MpiEngine {
 public:
  // `observer` may be null.
  MpiEngine(const PeerTable& peers, const MpiLimits& limits, MpiPortOpener open,
            TransportObserver* observer);

  const PeerTable& peers() const { return peers_; }
  const std::shared_ptr<Ending>& ending() const { return ending_; }
  // The messages that take an operation under `tag`.
  PeerMessages& messages(int peer, const MessageTag& tag) const {
    return *messages_[IsUrgent(tag) ? kUrgentMpiLane : 0][peer];
  }
  Traffic traffic(int peer) const { return messages_[0][peer]->traffic(); }

  void Run() RT_EXCLUDES(mutex_);
  // What became of MPI's beginning; not within the limit: DeadlineExceeded.
  Status AwaitBegin() RT_EXCLUDES(mutex_);
  // There may be something to write.
  void Wake() RT_EXCLUDES(mutex_);

  void End(const Status& cause, const Status& seen_by_peers);
  void Leave();

 private:
  // How this rank's part in the world has ended.
  struct Ended {
    bool in_peace = false;
    Deadline leave_at;  // from then on it waits for no rank
  };

  std::unique_ptr<PeerMessages> MakeMessages(int peer, int lane) const;
  Status Begin();
  void Work();
  Status Poll(bool* any);
  Status Read(MpiLane* lane, bool* any);
  void Pause(Deadline last_move) RT_EXCLUDES(mutex_);

  void OnPeerError(int peer, const Status& status);
  void EndWith(const Status& cause, const OutgoingFrame& last) RT_EXCLUDES(mutex_);
  std::optional<Ended> ended() RT_EXCLUDES(mutex_);
  bool MayStop(const Ended& ended) const;
  bool AllPeersHaveLeft() const;

  const PeerTable peers_;
  const MpiLimits limits_;
  const MpiPortOpener open_;
  TransportObserver* const observer_;
  const std::shared_ptr<Ending> ending_ = std::make_shared<Ending>();
  std::array<std::vector<std::unique_ptr<PeerMessages>>, kMpiLanes> messages_;  // by lane and rank

  // Of rt-mpi. The port goes first: until then the lanes' memory is MPI's.
  std::vector<std::unique_ptr<MpiLane>> lanes_;
  std::unique_ptr<MpiPort> port_;

  Mutex mutex_;
  ConditionVariable changed_;
  std::optional<Status> begin_ RT_GUARDED_BY(mutex_);  // none: not yet known
  bool work_ RT_GUARDED_BY(mutex_) = false;
  bool sleeping_ RT_GUARDED_BY(mutex_) = false;
  std::optional<Ended> ended_ RT_GUARDED_BY(mutex_);
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_MPI_MPI_ENGINE_H_
