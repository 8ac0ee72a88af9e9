// WorldSession: this process's part in a job of several ranks, from joining to leaving.
//
//   RT_ASSIGN_OR_RETURN(const auto session, WorldSession::Join(options, identity, config));
//   ... TrainingData::Open(config, session->world()); Trainer::Create(..., session->world()) ...
//   RT_RETURN_IF_ERROR(session->Leave());                  every rank, when all have finished
//   return session->Fail(status);                          where one cannot go on
//
// It owns, from the wire up: the transport to all ranks, the monitor that tells who hangs, and the
// trainer's view of the world. A job of one rank has none of them and needs no network.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_WORLD_SESSION_H_
#define RINGTAIL_APPS_WORLD_SESSION_H_

#include <memory>
#include <optional>
#include <string>

#include "apps/run.pb.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "dist/liveness/progress_monitor.h"
#include "dist/membership/identity/rank_identity.h"
#include "dist/membership/join.h"
#include "dist/membership/security/security.h"
#include "dist/trace/world_trace.h"

namespace ringtail {

struct WorldOptions {
  SecurityOptions security;
  std::optional<std::string> token_file;
  std::string trace;  // where rank 0 writes the timeline of all ranks; empty: none is taken
};

class WorldSession {
 public:
  // Returns when all ranks are there and agree on the config, or with what is wrong.
  static StatusOr<std::unique_ptr<WorldSession>> Join(const WorldOptions& options,
                                                      const RankIdentity& identity,
                                                      const RunConfig& config);
  // Says why Join has failed, and returns the exit code: kExitLostPeer if others did not come or
  // were lost on the way; any other if it is this rank that cannot, or may not, take part.
  static int FailToJoin(const Status& status);
  ~WorldSession();
  WorldSession(const WorldSession&) = delete;
  WorldSession& operator=(const WorldSession&) = delete;

  TrainingWorld* world() { return world_.get(); }
  const TrainingWorld& world() const { return *world_; }
  // "4 ranks on 2 hosts (Slurm); ring: 25 MB over 4 ranks at 117 MB/s, 321 ms"; with the reason for
  // the algorithm that gradients of `gradient_bytes` take.
  std::string Describe(int64_t gradient_bytes) const;

  // Waits until all ranks have finished; then nobody needs this one any more. Writes the timeline.
  Status Leave();
  // Tells the others why this rank ends, and returns its exit code: kExitLostPeer if the cause is
  // another rank, kExitFailure if this one is cut off from all.
  int Fail(const Status& status);

 private:
  WorldSession() = default;
  Status FinishTimeline();

  std::string source_;
  JoinedWorld joined_;
  std::unique_ptr<ProgressMonitor> monitor_;
  std::unique_ptr<TrainingWorld> world_;
  std::string trace_path_;
  std::optional<WorldTrace> trace_;  // of several ranks
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_WORLD_SESSION_H_
