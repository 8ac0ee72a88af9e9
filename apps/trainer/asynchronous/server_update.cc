#include "apps/trainer/asynchronous/server_update.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/parameter_server/server_optimizer.h"
#include "apps/trainer/asynchronous/server_report.h"
#include "apps/trainer/asynchronous/state_snapshot.h"
#include "apps/trainer/asynchronous/worker_division.h"
#include "core/logging.h"
#include "core/round.h"
#include "core/stop_signal.h"
#include "core/trace.h"
#include "core/units.h"
#include "dist/compression/scheme_choice.h"
#include "dist/parameter_server/rule_choice.h"
#include "optim/gradient_norm.h"
#include "optim/weight_average.h"

namespace ringtail {
namespace {

constexpr int kNotFinite = 255;  // no signal has this number
constexpr int64_t kMostLeftOutInARow = 10;

}  // namespace

ServerUpdate::ServerUpdate(const Generation* generation)
    : generation_(generation),
      world_(generation->world),
      listener_(world_->progress()),
      lost_images_(generation->config().data().path()),
      images_per_step_(generation->plan.growth_run().images_per_batch),
      round_end_(generation->plan.total_steps()) {}

StatusOr<std::unique_ptr<UpdatePath>> ServerUpdate::Create(const Generation* generation,
                                                           const ResumePoint& point) {
  const AsynchronousRule rule = RuleOf(generation->config().dist().asynchronous());
  RT_RETURN_IF_ERROR(CheckServerOptimizer(rule, generation->optim.config));
  std::unique_ptr<ServerUpdate> update(new ServerUpdate(generation));
  RT_RETURN_IF_ERROR(update->Start(point));
  return std::unique_ptr<UpdatePath>(std::move(update));
}

Status ServerUpdate::Start(const ResumePoint& point) {
  const AsynchronousConfig& config = generation_->config().dist().asynchronous();
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                      world_->ShareNumbers(NumbersOf(point.servers), point.source_rank));
  RT_ASSIGN_OR_RETURN(progress_, ServerProgressOf(numbers));
  RT_ASSIGN_OR_RETURN(learnt_, ShareRuleState(world_, point, RuleOf(config), generation_->arena()));
  RT_RETURN_IF_ERROR(ChooseCoding());
  shards_ = PlaceShards(generation_->config(), generation_->arena(), layers_, world_);
  const auto own = static_cast<size_t>(world_->rank());
  if (own < shards_.size()) {
    RT_ASSIGN_OR_RETURN(served_,
                        ServedShard::Create(generation_, shards_, own, progress_, learnt_));
  }
  RT_RETURN_IF_ERROR(CreateReplicas());
  link_ = std::make_unique<WorkerLink>(world_->transport(), Servers());
  round_ = std::make_unique<WorkerRound>(
      world_, link_.get(), &shards_, &generation_->arena(),
      WorkerRound::Options{.overlap = PullsAhead(config),
                           .bounded = IsBounded(),
                           .computes = Computes(),
                           .pull = config.pull(),
                           .memories = memories_ ? &*memories_ : nullptr});
  StartServing(own);
  started_ = true;
  round_begin_ = generation_->step();
  KeepState();
  if (!world_->leads()) return OkStatus();
  const TrainingPlan& plan = generation_->plan;
  const int64_t per_push =
      generation_->division.own.batch * RuleOf(config).grouping.gradients_per_push;
  guard_.emplace(WatchLoss(per_push, plan.batches_per_epoch() * images_per_step_,
                           std::ssize(generation_->run->options.data->dataset->class_names())));
  LogInfo(DescribeServers(config, static_cast<int>(shards_.size()),
                          WorkersOf(generation_->division.all)));
  OpenRound();
  return OkStatus();
}

Status ServerUpdate::CreateReplicas() {
  if (generation_->config().dist().asynchronous().replicas() > 0 && shards_.size() < 2) {
    return InvalidArgument(
        "dist.asynchronous.replicas: 1 is for at least two servers, since the first one, whose "
        "rank "
        "keeps the run, has no replica; more ranks, dist.asynchronous.servers, or replicas: 0");
  }
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (!shards_[i].replica || shards_[i].replica->rank != world_->rank()) continue;
    RT_ASSIGN_OR_RETURN(auto replica,
                        ServedShard::Create(generation_, shards_, i, progress_, learnt_));
    replicas_.push_back(std::move(replica));
  }
  return OkStatus();
}

void ServerUpdate::StartServing(size_t own) {
  if (served_ != nullptr) {
    served_->Start(link_->own_replies(own));
    link_->SetOwn(own, served_->thread());
  }
  for (const std::unique_ptr<ServedShard>& replica : replicas_) {
    replica->StartReplica(link_->own_replies(replica->index()));
    link_->SetOwnReplica(replica->index(), replica->thread());
  }
}

// Pushes by dist.compression; what a scheme leaves out is in the next push.
Status ServerUpdate::ChooseCoding() {
  const CompressionConfig& config = generation_->config().dist().compression();
  if (!CompressesAnything(config)) return OkStatus();
  const ParameterArena& model = generation_->arena();
  const auto samples = static_cast<double>(generation_->config().train().batch());
  RT_ASSIGN_OR_RETURN(layers_, PushLayers(config, model.parameters(), samples));
  memories_.emplace(&model, layers_, LayerMemoryOptions{.rank = world_->rank()});
  return OkStatus();
}

std::vector<WorkerLink::Server> ServerUpdate::Servers() const {
  const AsynchronousConfig& config = generation_->config().dist().asynchronous();
  const bool shares_statistics = RuleOf(config).synchronous();
  const size_t blocks = world_->leads() ? served_->block_names().size() : 0;
  std::vector<WorkerLink::Server> servers;
  for (const PlacedShard& shard : shards_) {
    const bool first = shard.rank == 0;
    servers.push_back(
        {.rank = shard.rank,
         .requests = shard.requests,
         .replies = shard.replies,
         .weight_bytes =
             static_cast<size_t>(PullDecoder(config.pull(), shard.layout.elements()).MostBytes()),
         .statistics_bytes =
             first && shares_statistics ? generation_->arena().buffer_values().size_bytes() : 0,
         .coded = config.pull() != AsynchronousConfig::F32,
         .state_bytes = SnapshotBytes(shard, first, blocks, generation_->state(), learnt_)});
    if (!shard.replica) continue;
    servers.back().replica = {.rank = shard.replica->rank,
                              .requests = shard.replica->requests,
                              .replies = shard.replica->replies};
  }
  return servers;
}

ServerUpdate::~ServerUpdate() { End(); }

// Servers wait until all workers have left.
void ServerUpdate::End() {
  if (!std::exchange(started_, false)) return;
  const ScopedPhase blocked(world_->progress(), Phase::kBlocked);
  const TrainingProgress& progress = generation_->progress();
  if (world_->leads()) {
    served_->Close(
        {.kind = MessageKind::kEnd, .first = progress.step, .norm = progress.best_accuracy});
  }
  round_->Leave();
  link_->Finish();
  served_.reset();
  replicas_.clear();
  link_.reset();
}

int ServerUpdate::Signal() const { return must_stop_ ? kNotFinite : StopSignal(); }

StatusOr<StepWork> ServerUpdate::BeginStep() {
  since_step_.Restart();
  // Nothing needs all ranks any more.
  if (!std::exchange(begun_, true)) RT_RETURN_IF_ERROR(world_->TolerateLosses(nullptr));
  if (synchronized_ && world_->leads()) round_->Restart();
  synchronized_ = false;
  RT_ASSIGN_OR_RETURN(work_, round_->Next(Signal()));
  const std::span<const float> statistics = generation_->arena().buffer_values();
  statistics_before_.assign(statistics.begin(), statistics.end());
  return work_;
}

StatusOr<StepResult> ServerUpdate::FinishStep(const OwnStep& own) {
  StepResult result{.counted = true};
  if (work_.kind == StepWork::Kind::kTicket) {
    RT_RETURN_IF_ERROR(Push(own, &result));
  } else if (!round_->over()) {
    RT_RETURN_IF_ERROR(Look());
  } else if (world_->leads()) {
    RT_RETURN_IF_ERROR(EndRound(&result));
  } else {
    RT_RETURN_IF_ERROR(EndRun(&result));
  }
  Measure(own, &result);
  return result;
}

Status ServerUpdate::Push(const OwnStep& own, StepResult* result) {
  world_->progress()->Enter(Phase::kUpdate);
  RT_RETURN_IF_ERROR(lost_images_.Check(work_.ticket.rows, own.loss.count));
  const double mean = 1.0 / static_cast<double>(std::max<int64_t>(own.loss.count, 1));
  const double norm = GradientNorm(generation_->arena(), mean);
  const bool finite = std::isfinite(own.loss.loss_sum) && std::isfinite(norm);
  if (!finite) RT_RETURN_IF_ERROR(LeaveOut(own));
  if (finite) left_out_in_a_row_ = 0;
  RT_RETURN_IF_ERROR(round_->Push(own, finite, norm, Signal()));
  FollowStep(world_->leads() ? served_->progress().images : round_->images());
  result->metrics.own = {.batch = own.loss.count,
                         .data_wait_ms = own.wait_seconds * kMsPerSecond,
                         .forward_ms = own.times.forward_seconds * kMsPerSecond,
                         .backward_ms = own.times.backward_seconds * kMsPerSecond};
  const double seconds = since_step_.Seconds();
  return world_->RecordStep(seconds, seconds);
}

// What this rank knows of all; the last step is that of a synchronized point. Worker 0 asks its own
// server: what its last pull has said is older than the rows that its line of metrics counts.
void ServerUpdate::FollowStep(int64_t images) {
  generation_->progress().step =
      std::clamp(images / images_per_step_, generation_->step(), round_end_ - 1);
}

// A rank that only serves: nothing is over.
Status ServerUpdate::Look() {
  if (!world_->leads()) return OkStatus();
  FollowStep(served_->progress().images);
  if (served_->HasWorkers()) return OkStatus();
  Status status(StatusCode::kUnavailable, "no rank that computes is left");
  world_->Abort(status);
  return status;
}

bool ServerUpdate::Computes() const {
  return generation_->division.all.batches[static_cast<size_t>(world_->rank())] > 0;
}

Status ServerUpdate::LeaveOut(const OwnStep& own) {
  if (left_out_ == 0) {
    RT_ASSIGN_OR_RETURN(not_finite_, own.find_not_finite());
    if (not_finite_.empty()) not_finite_ = "the loss is not finite, though every layer's output is";
    LogWarning(not_finite_ + "; its gradient is not used");
  }
  std::ranges::copy(statistics_before_, generation_->arena().buffer_values().begin());
  ++left_out_;
  const bool stops = generation_->config().train().on_nan() == TrainConfig::STOP;
  must_stop_ = must_stop_ || stops || ++left_out_in_a_row_ > kMostLeftOutInARow;
  return OkStatus();
}

// The rank that leads says what all have done since its last line.
void ServerUpdate::Measure(const OwnStep& own, StepResult* result) {
  const double blocked = round_->TakeBlockedSeconds();
  const RankMetrics rank = result->metrics.own;
  result->metrics = {.kind = Metrics::Kind::kUpdate};
  if (world_->leads()) {
    const UpdateCounts counts = served_->TakeCounts();
    result->metrics = MetricsOfUpdates(counts, since_line_.Restart());
    Watch(counts);
  }
  result->metrics.own = rank;
  result->metrics.servers.blocked_ms = blocked * kMsPerSecond;
  result->silent = result->metrics.batch == 0 && own.loss.count == 0;
  const int64_t step = generation_->step();
  result->metrics.step = std::max<int64_t>(step, 1);
  result->metrics.epoch = generation_->plan.EpochAt(step);
  if (world_->leads()) result->metrics.learning_rate = served_->rate();
}

// (Gradients that are not finite: LeaveOut.)
void ServerUpdate::Watch(const UpdateCounts& counts) {
  if (counts.rows == 0) return;
  const auto staleness = std::lround(counts.staleness.Mean());
  if (guard_->Add(counts.loss_sum, counts.rows, staleness, true) ==
      DivergenceGuard::Verdict::kFine) {
    return;
  }
  LogWarning(
      fmt::format("{}; {}", guard_->report(),
                  AdviceAgainstDivergence(RuleOf(generation_->config().dist().asynchronous()),
                                          MomentumOf(generation_->optim.config))));
}

Status ServerUpdate::EndRound(StepResult* result) {
  const ScopedSpan span("snapshot", "server");
  RT_RETURN_IF_ERROR(TakeSnapshot());
  TrainingProgress& progress = generation_->progress();
  progress.step =
      std::min(progress_.rows_used() / images_per_step_, generation_->plan.total_steps());
  TellWhatStopped(result);
  progress.skipped_steps = std::min(progress.skipped_steps + result->left_out, progress.step);
  round_begin_ = progress.step;
  KeepState();
  synchronized_ = true;
  if (round_->end().reason == 0) OpenRound();
  return OkStatus();
}

// All pushes that the first server has taken are in the others, too.
Status ServerUpdate::TakeSnapshot() {
  RT_ASSIGN_OR_RETURN(const std::vector<SharedBuffer> states,
                      round_->TakeSnapshot(served_->Pushes()));
  const std::vector<std::string> blocks = served_->block_names();
  std::vector<RuleScalars> scalars;
  for (size_t i = 0; i < shards_.size(); ++i) {
    scalars.push_back(PutSnapshot(shards_[i], i == 0, blocks, states[i]->floats(),
                                  &generation_->state(), &learnt_));
  }
  learnt_.scalars = MeanOf(scalars);
  progress_ = served_->progress();
  return OkStatus();
}

// The others compute, while this rank evaluates and saves.
void ServerUpdate::OpenRound() {
  round_end_ =
      NextRoundEnd(generation_->plan, round_begin_, CeilDivide(progress_.next, images_per_step_));
  served_->Open(round_end_ * images_per_step_);
  if (IsBounded() && begun_ && Computes()) round_->GoAway();
}

// Where all wait for all in every update, all have as many tickets.
bool ServerUpdate::IsBounded() const {
  const AsynchronousRule rule = RuleOf(generation_->config().dist().asynchronous());
  return rule.admission.bound != Admission::kUnbounded && !rule.synchronous() && !world_->alone();
}

// The step and the best accuracy say, as for worker 0, whether the run has finished.
Status ServerUpdate::EndRun(StepResult* result) {
  if (std::exchange(ended_, true)) {
    return Status(StatusCode::kUnavailable, "rank 0 has ended the run before its last step");
  }
  const ServerMessage& end = round_->end();
  TrainingProgress& progress = generation_->progress();
  progress.step = round_begin_ = std::min(end.first, generation_->plan.total_steps());
  progress.best_accuracy = end.norm;
  TellWhatStopped(result);
  KeepState();
  synchronized_ = true;
  return OkStatus();
}

// A signal, or a gradient that is not finite, on some rank.
void ServerUpdate::TellWhatStopped(StepResult* result) {
  const ServerMessage& end = round_->end();
  agreed_signal_ = end.reason == kNotFinite ? 0 : end.reason;
  result->left_out = std::exchange(left_out_, 0);
  result->not_finite = std::exchange(not_finite_, "");
  if (end.reason != kNotFinite) return;
  generation_->progress().skipped_in_a_row = kMostLeftOutInARow + 1;
  result->left_out = std::max<int64_t>(result->left_out, 1);
  if (end.rows == world_->rank() && !result->not_finite.empty()) return;
  result->not_finite = fmt::format("{}: a loss or gradient is not finite; its log says where",
                                   world_->Describe(end.rows));
}

void ServerUpdate::KeepState() {
  const ParameterArena& model = generation_->arena();
  weights_.assign(model.values().begin(), model.values().end());
  statistics_.assign(model.buffer_values().begin(), model.buffer_values().end());
}

// What a server has done since cannot be taken back, but is not in the run's state.
void ServerUpdate::Undo() {
  if (synchronized_) return;
  std::ranges::copy(weights_, generation_->arena().values().begin());
  std::ranges::copy(statistics_, generation_->arena().buffer_values().begin());
  generation_->progress().step = round_begin_;
  synchronized_ = true;
}

std::vector<TensorView> ServerUpdate::Tensors() const {
  return RuleTensors(learnt_, generation_->arena());
}

void ServerUpdate::Describe(ResumePoint* point) const {
  point->servers = progress_;
  point->server_rule = learnt_.scalars;
  point->division = CheckpointDivision(generation_->division.all, images_per_step_);
}

}  // namespace ringtail
