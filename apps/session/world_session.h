// WorldSession: this process's part in a job of several ranks, from joining to leaving.
//
//   RT_ASSIGN_OR_RETURN(const auto session, WorldSession::Join(options, identity, config));
//   TrainingWorld* const world = session->world();
//   ... TrainingData::Open(config, world); Trainer::Create(run, point, world) ...
//   RT_ASSIGN_OR_RETURN(code, session->EndWith(code));     every rank, when all have finished
//   return session->Fail(status);                          a rank that cannot continue
//
// Ranks that would slow the others down are there without training:
//
//   RT_RETURN_IF_ERROR(session->TrainOnly(group, config));  from now on world() is the group's
//   if (!session->trains()) ... session->EndWith(0) returns when the others have finished
//
// It owns, from the wire up: the transport to all ranks, the monitor that tells which rank hangs,
// and the trainer's view of the world. A job of one rank has only the last and needs no network.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_SESSION_WORLD_SESSION_H_
#define RINGTAIL_APPS_SESSION_WORLD_SESSION_H_

#include <memory>
#include <optional>
#include <string>

#include "apps/run.pb.h"
#include "apps/session/stop_relay.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "dist/collectives/rank_group.h"
#include "dist/liveness/progress_monitor.h"
#include "dist/membership/identity/rank_identity.h"
#include "dist/membership/join.h"
#include "dist/membership/security/security.h"
#include "dist/trace/world_trace.h"

namespace ringtail {

class WatchedProgress;

// Threads that talk to other ranks: ours (rt-comm, rt-liveness, rt-grpc, ...), and those of gRPC,
// whose number depends on the machine.
inline constexpr int kThreadsOfAWorld = 16;

struct WorldOptions {
  SecurityOptions security;
  std::optional<std::string> token_file;
  std::string trace;  // file for the timeline of all ranks, which rank 0 writes; empty: none
};

class WorldSession {
 public:
  // Returns when all ranks have joined and agree on the config, or an error.
  static StatusOr<std::unique_ptr<WorldSession>> Join(const WorldOptions& options,
                                                      const RankIdentity& identity,
                                                      const RunConfig& config);
  // Logs why Join has failed, and returns the exit code: kExitLostPeer if other ranks did not join
  // or were lost; another code if this rank cannot, or may not, take part.
  static int FailToJoin(const Status& status);
  ~WorldSession();
  WorldSession(const WorldSession&) = delete;
  WorldSession& operator=(const WorldSession&) = delete;

  // The ranks that train: at first all. On a rank that does not train, all of them.
  TrainingWorld* world() { return group_ != nullptr ? group_.get() : everyone_.get(); }
  const TrainingWorld& world() const { return group_ != nullptr ? *group_ : *everyone_; }
  // All ranks, those that do not train included.
  TrainingWorld* everyone() { return everyone_.get(); }

  // All ranks, once, before training: only the ranks of `group` train. Rank 0 must be its first. A stop
  // signal that reaches one of the others reaches them.
  Status TrainOnly(const RankGroup& group, const DistConfig& config);
  bool trains() const { return trains_; }
  // "4 ranks on 2 hosts (Slurm)".
  std::string Describe() const;

  // Waits until all ranks have finished and no longer need this one. Writes the timeline. Returns
  // the exit code of rank 0: those that train have the same, the others need it. In a world that
  // outlives its losses it waits for those that are left, and returns `exit_code`.
  StatusOr<int> EndWith(int exit_code);
  // Tells the others why this rank ends, and returns its exit code: kExitLostPeer if the cause is
  // another rank, kExitFailure if this one is cut off from all.
  int Fail(const Status& status);

 private:
  WorldSession() = default;
  Status FinishTimeline();
  StatusOr<int> EndWithoutTheLost(int exit_code);

  std::string source_;
  JoinedWorld joined_;
  std::shared_ptr<WatchedProgress> training_;  // null for a single rank, as is the monitor
  std::unique_ptr<ProgressMonitor> monitor_;
  std::unique_ptr<TrainingWorld> everyone_;
  std::unique_ptr<TrainingWorld> group_;  // null: everyone trains, or this rank does not
  bool trains_ = true;
  std::string trace_path_;
  std::optional<WorldTrace> trace_;  // none for a single rank
  std::optional<StopRelay> relay_;   // none until TrainOnly
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_SESSION_WORLD_SESSION_H_
