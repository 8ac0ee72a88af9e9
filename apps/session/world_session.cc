#include "apps/session/world_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "apps/config/config_fields.h"
#include "apps/exit_code.h"
#include "apps/session/last_word.h"
#include "apps/trainer/checkpoint/numerics.h"
#include "apps/version.h"
#include "core/logging.h"
#include "core/stop_signal.h"
#include "core/text/counted.h"
#include "core/trace.h"
#include "dist/config_check.h"
#include "dist/membership/identity/rank_environment.h"
#include "dist/membership/security/job_token.h"
#include "dist/probe.h"

namespace ringtail {
namespace {

using std::chrono::milliseconds;

milliseconds Milliseconds(double seconds) { return milliseconds(std::llround(seconds * 1000)); }

FingerprintFields Fingerprint(const RunConfig& config) {
  FingerprintFields fields;
  for (auto& [name, value] : SharedConfigFields(config)) {
    fields.push_back({.name = std::move(name), .value = std::move(value)});
  }
  if (NeedsSameNumerics(config.dist())) {
    fields.push_back({.name = "instruction set", .value = CurrentNumerics().isa});
  }
  return fields;
}

LivenessLimits Limits(const DistConfig& config) {
  const milliseconds hang = Milliseconds(config.hang_timeout_s());
  // Several heartbeats within the limit, so that a late one does not matter. Other ranks may still
  // be joining for as long as a join may take.
  return {.interval = std::clamp(hang / 8, milliseconds(10), milliseconds(1000)),
          .silence_limit = hang,
          .stall_limit = hang,
          .begin_limit = Milliseconds(config.join_timeout_s()) + hang};
}

// The monitor has ended the world. A training thread that hangs does not notice, and the process ends
// without it.
void EndWithoutTrainer(const Verdict& verdict, int rank, milliseconds silence,
                       std::shared_ptr<const WatchedProgress> training) {
  LastWord::Limits limits;
  limits.silence = std::max(silence, limits.returning);
  const auto& culprits = verdict.culprits;
  const bool own = std::find(culprits.begin(), culprits.end(), rank) != culprits.end();
  EndUnlessItReturns(LastWord(limits, own, LastWord::TimePoint::clock::now()), std::move(training),
                     own ? kExitFailure : kExitLostPeer, std::string(verdict.status.message()));
}

}  // namespace

StatusOr<std::unique_ptr<WorldSession>> WorldSession::Join(const WorldOptions& options,
                                                           const RankIdentity& identity,
                                                           const RunConfig& config) {
  std::unique_ptr<WorldSession> session(new WorldSession);
  session->source_ = identity.source;
  session->trace_path_ = options.trace;
  if (identity.world_size == 1) {
    session->everyone_ = std::make_unique<TrainingWorld>();
    if (!options.trace.empty()) StartTrace(/*rank=*/0);
    return session;
  }
  if (identity.source == "Open MPI") SetJobLauncher("mpirun");
  const milliseconds join_timeout = Milliseconds(config.dist().join_timeout_s());
  RT_ASSIGN_OR_RETURN(std::string token, ReadJobToken(options.token_file, ProcessEnvironment));
  RT_ASSIGN_OR_RETURN(
      session->joined_,
      JoinWorld({.identity = identity,
                 .token = std::move(token),
                 .security = options.security,
                 .join_timeout = join_timeout,
                 .silence_limit = Milliseconds(config.dist().hang_timeout_s()),
                 .fingerprint = Fingerprint(config),
                 .build = BuildVersionOfRank(),
                 .transport = config.dist().transport(),
                 .shared_memory = config.dist().shared_memory(),
                 // A pod's name resolves once the pod runs; elsewhere an unknown name is an error.
                 .name_timeout =
                     identity.source == "Kubernetes" ? join_timeout : JoinOptions().name_timeout}));
  JoinedWorld* const joined = &session->joined_;
  const auto describe = [joined](int rank) { return joined->Describe(rank); };
  const auto training = session->training_ = std::make_shared<WatchedProgress>();
  const LivenessLimits limits = Limits(config.dist());
  session->monitor_ = std::make_unique<ProgressMonitor>(
      joined->transport.get(),
      MonitorOptions{.limits = limits,
                     .describe = describe,
                     .on_end = [rank = joined->rank, silence = limits.stall_limit,
                                training](const Verdict& verdict) {
                       EndWithoutTrainer(verdict, rank, silence, training);
                     }});
  training->Watch(&session->monitor_->progress());
  // Whatever the error, another rank caused it.
  const auto lost = [](const Status& status) {
    return status.ok() ? status : Status(StatusCode::kUnavailable, status.message());
  };
  const ScopedPhase exchange(&session->monitor_->progress(), Phase::kExchange);
  // Also where the config has chosen everything: to predict the run takes it, too (apps/plan/).
  const auto moved = [monitor = session->monitor_.get()] { return monitor->moved(); };
  const auto network = ProbeNetwork(joined->transport.get(), joined->topology, {.moved = moved});
  RT_RETURN_IF_ERROR(lost(network.status()));
  if (!options.trace.empty()) {
    auto trace = WorldTrace::Start(joined->transport.get());
    RT_RETURN_IF_ERROR(lost(trace.status()));
    session->trace_ = *std::move(trace);
  }
  RT_ASSIGN_OR_RETURN(session->everyone_,
                      TrainingWorld::Create({.transport = joined->transport.get(),
                                             .topology = joined->topology,
                                             .network = *network,
                                             .describe = describe,
                                             .monitor = session->monitor_.get()},
                                            config.dist()));
  return session;
}

int WorldSession::FailToJoin(const Status& status) {
  LogError(status.message());
  if (StopSignal() != 0) return kExitSignalBase + StopSignal();  // other ranks may have ended first
  return ExitCodeOfWorld(status);
}

// The thread that waits for the training thread's end outlives the monitor.
WorldSession::~WorldSession() {
  if (training_ != nullptr) training_->Forget();
}

std::string WorldSession::Describe() const {
  return fmt::format("{} on {} ({})", Counted(world().size(), "rank"),
                     Counted(world().topology().hosts(), "host"), source_);
}

Status WorldSession::TrainOnly(const RankGroup& group, const DistConfig& config) {
  RT_CHECK(group_ == nullptr && trains_, "a session is divided once");
  RT_CHECK(group.MemberOf(0) == 0, "rank 0 leads the ranks that train");
  RT_ASSIGN_OR_RETURN(group_, everyone_->OfGroup(group, config));
  trains_ = group_ != nullptr;
  relay_.emplace(joined_.transport.get(), everyone_->NextChannel(), group,
                 [this](int rank) { return joined_.Describe(rank); });
  return OkStatus();
}

Status WorldSession::FinishTimeline() {
  if (trace_path_.empty()) return OkStatus();
  if (everyone_->alone()) return FinishTrace(trace_path_);
  const ScopedPhase exchange(everyone_->progress(), Phase::kExchange);
  return trace_->Finish(trace_path_, everyone_->Describe(everyone_->rank()));
}

// Who has finished is not to end as one that lost a peer, whatever happens to the others now.
StatusOr<int> WorldSession::EndWithoutTheLost(int exit_code) {
  RT_RETURN_IF_ERROR(monitor_->Stop());
  const Status timeline = FinishTimeline();
  if (!timeline.ok()) LogWarning(timeline.Annotate("no timeline").message());
  return exit_code;
}

StatusOr<int> WorldSession::EndWith(int exit_code) {
  if (world()->tolerant()) return EndWithoutTheLost(exit_code);
  RT_ASSIGN_OR_RETURN(const auto codes, everyone_->ShareNumbers({exit_code}, /*source_rank=*/0));
  if (relay_) relay_->Finish();
  RT_RETURN_IF_ERROR(everyone_->Barrier());
  RT_RETURN_IF_ERROR(FinishTimeline());
  if (!everyone_->alone()) RT_RETURN_IF_ERROR(monitor_->Stop());
  return static_cast<int>(codes.at(0));
}

int WorldSession::Fail(const Status& status) {
  world()->Abort(status);
  LogError(status.message());
  if (world()->cut_off()) return kExitFailure;  // this rank is the cause
  switch (world()->culprit()) {
    case TrainingWorld::Culprit::kThisRank:
      return kExitFailure;
    case TrainingWorld::Culprit::kAnother:
      return kExitLostPeer;
    case TrainingWorld::Culprit::kUnknown:
      return kExitDisagree;
    case TrainingWorld::Culprit::kNone:
      break;
  }
  return world()->lost() ? kExitLostPeer : ExitCodeOf(status);
}

}  // namespace ringtail
