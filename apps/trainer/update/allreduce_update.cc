#include "apps/trainer/update/allreduce_update.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/logging.h"
#include "core/trace.h"
#include "core/units.h"
#include "optim/batch_growth.h"
#include "optim/gradient_norm.h"
#include "optim/weight_average.h"

namespace ringtail {
namespace {

// The factor of clipping is not known before all gradients are. Alone there is nothing to wait for.
bool Prepares(const Generation& generation) {
  return !generation.replicas->alone() && generation.optim.config.clip_norm() == 0 &&
         !generation.state().optimizer()->PreparableWork().empty();
}

}  // namespace

StatusOr<std::unique_ptr<UpdatePath>> AllreduceUpdate::Create(const Generation* generation,
                                                              const ResumePoint& point) {
  std::unique_ptr<AllreduceUpdate> update(new AllreduceUpdate(generation));
  RT_RETURN_IF_ERROR(update->CreateCompression(point));
  return std::unique_ptr<UpdatePath>(std::move(update));
}

AllreduceUpdate::AllreduceUpdate(const Generation* generation)
    : generation_(generation),
      world_(generation->world),
      exchange_(world_, generation->replicas, &generation->arena(), generation->division.own,
                generation->config().dist()),
      lost_images_(generation->config().data().path()),
      roll_call_(world_),
      prepares_(Prepares(*generation)) {}

Status AllreduceUpdate::CreateCompression(const ResumePoint& point) {
  const RunConfig& config = generation_->config();
  RT_ASSIGN_OR_RETURN(const GradientCompression::Saved saved, GradientCompression::Read(point));
  RT_ASSIGN_OR_RETURN(compression_, GradientCompression::Create(
                                        world_, &generation_->arena(), config.dist().compression(),
                                        {.global_batch = generation_->division.own.global_batch,
                                         .seed = config.train().seed(),
                                         .buckets = exchange_.buckets(),
                                         .directory = generation_->run->checkpoints(),
                                         .thaws = generation_->WillThaw()},
                                        saved));
  exchange_.Compress(compression_.get());
  if (compression_ != nullptr && world_->leads()) {
    LogInfo("gradients: " + compression_->description());
  }
  return OkStatus();
}

StatusOr<StepWork> AllreduceUpdate::BeginStep() {
  since_begin_.Restart();
  const int64_t step = generation_->step();
  const std::span<const float> statistics = generation_->arena().buffer_values();
  statistics_before_.assign(statistics.begin(), statistics.end());
  exchange_.BeginStep(step, NoiseScale::Measures(step));
  if (world_->shard_thread() != nullptr) world_->shard_thread()->TakeTimes();  // of evaluations
  if (compression_ != nullptr) {
    const TrainingPlan& plan = generation_->plan;
    compression_->BeginStep(step, plan.EpochAt(step), plan.BatchesOf(step));
  }
  return StepWork{.statistics_steps = exchange_.statistics_steps()};
}

StatusOr<StepResult> AllreduceUpdate::FinishStep(const OwnStep& own) {
  const TrainingPlan& plan = generation_->plan;
  TrainingState& state = generation_->state();
  const int64_t step = generation_->step(), batches = plan.BatchesOf(step);
  LossResult loss = own.loss;
  RT_RETURN_IF_ERROR(exchange_.WaitForLoss(&loss));
  const double mean = 1.0 / static_cast<double>(std::max<int64_t>(loss.count, 1));
  RT_RETURN_IF_ERROR(ExchangeAndPrepare(mean));
  if (!exchange_.takes_statistics()) RestoreStatistics();
  world_->progress()->Enter(Phase::kUpdate);
  RT_RETURN_IF_ERROR(
      lost_images_.Check(generation_->division.own.global_batch * batches, loss.count));

  if (world_->shard_thread() != nullptr) shard_times_ = world_->shard_thread()->TakeTimes();
  RT_ASSIGN_OR_RETURN(const double norm, NormOfMean(mean));
  if (!std::isfinite(loss.loss_sum) || !std::isfinite(norm)) {
    Undo();
    if (compression_ != nullptr) compression_->Forget();
    return StepResult{.counted = false};
  }
  StepResult result{.counted = true};
  result.metrics.own = OwnMetrics(own);
  roll_call_.Begin(result.metrics.own, exchange_.gradient_squares());
  const double rate =
      GrownRate(generation_->optim.config, plan.growth_run(), plan.BatchesBefore(step), batches);
  UpdateWeights(rate, mean, norm);
  state.progress.skipped_in_a_row = 0;
  ++state.progress.step;
  statistics_before_.clear();

  result.metrics.step = step + 1;
  result.metrics.epoch = plan.EpochAt(step + 1);
  result.metrics.loss = loss.loss_sum * mean;
  result.metrics.accuracy = static_cast<double>(loss.correct) * mean;
  result.metrics.learning_rate = rate;
  result.metrics.batch = loss.count;
  RT_RETURN_IF_ERROR(FinishRollCall(own, loss, norm, &result.metrics));
  result.metrics.images_per_s = static_cast<double>(loss.count) / since_begin_.Seconds();
  return result;
}

void AllreduceUpdate::UpdateWeights(double rate, double mean, double norm) {
  const ScopedSpan span("update", "step");
  const int64_t step = generation_->step();
  TrainingState& state = generation_->state();
  if (prepares_) {
    state.optimizer()->StepPrepared(step, rate, &prepared_);
  } else {
    const double clip = ClipFactor(norm, generation_->optim.config.clip_norm());
    state.optimizer()->Step(step, rate, mean * clip);
  }
  if (state.average() != nullptr) state.average()->Update(step);
}

// What the optimizer needs of gradients that are there is computed while the cores would wait for
// others. Whether the step is made is decided when all are there; until then it changes nothing.
Status AllreduceUpdate::ExchangeAndPrepare(double mean) {
  if (!prepares_) return exchange_.Finish(nullptr);
  prepared_.Begin(mean);
  return exchange_.Finish([&](std::span<const size_t> parameters) {
    const ScopedSpan span("prepare update", "step");
    world_->progress()->Enter(Phase::kUpdate);
    generation_->state().optimizer()->Prepare(parameters, &prepared_);
  });
}

// The same on all ranks, though each has the gradients of its own rows of what they divide.
StatusOr<double> AllreduceUpdate::NormOfMean(double mean) {
  const ParameterArena& arena = generation_->arena();
  if (generation_->run->stage.divides()) {
    // Each stage once for each of its replicas, which have the same.
    double all = GradientSquares(arena.grads());
    RT_RETURN_IF_ERROR(world_->Sum(std::span(&all, 1)));
    return std::sqrt(all / generation_->replicas->size()) * mean;
  }
  if (arena.sharded().empty()) return GradientNorm(arena, mean);
  const int64_t replicated = arena.replicated_floats();
  double divided = GradientSquares(arena.grads().subspan(replicated));
  RT_RETURN_IF_ERROR(world_->Sum(std::span(&divided, 1)));
  return std::sqrt(GradientSquares(arena.grads().first(replicated)) + divided) * mean;
}

// Batch norm has mixed a step's batch into its running statistics before the step is whole.
void AllreduceUpdate::Undo() {
  RestoreStatistics();
  statistics_before_.clear();
}

void AllreduceUpdate::RestoreStatistics() {
  std::ranges::copy(statistics_before_, generation_->arena().buffer_values().begin());
}

// Of the step whose gradients are there.
RankMetrics AllreduceUpdate::OwnMetrics(const OwnStep& own) {
  ExchangeTimes exchange = exchange_.times();
  exchange.busy_seconds += shard_times_.busy_seconds;
  exchange.exposed_seconds += shard_times_.exposed_seconds + own.stages.wait_seconds;
  exchange.busy_seconds += own.stages.wait_seconds;
  const int64_t step = generation_->step();
  RankMetrics metrics{.batch = generation_->division.own.batch * generation_->plan.BatchesOf(step),
                      .data_wait_ms = own.wait_seconds * kMsPerSecond,
                      .forward_ms = own.times.forward_seconds * kMsPerSecond,
                      .backward_ms = own.times.backward_seconds * kMsPerSecond,
                      .exposed_comm_ms = exchange.exposed_seconds * kMsPerSecond,
                      .hidden_comm_ms = exchange.hidden_seconds() * kMsPerSecond,
                      .comm_bytes = exchange_.sent_bytes() + own.stages.sent_bytes};
  if (compression_ != nullptr) {
    const CodingTimes coding = compression_->EndStep(step + 1);
    metrics.encode_ms = coding.encode_seconds * kMsPerSecond;
    metrics.decode_ms = coding.decode_seconds * kMsPerSecond;
  }
  return metrics;
}

Status AllreduceUpdate::FinishRollCall(const OwnStep& own, const LossResult& loss,
                                       double gradient_norm, Metrics* metrics) {
  RT_ASSIGN_OR_RETURN(const std::span<const RankStep> ranks, roll_call_.Finish());
  if (!world_->alone()) {
    for (const RankStep& rank : ranks) metrics->ranks.push_back(rank.metrics);
  }
  AddToNoiseScale(loss, gradient_norm, ranks);
  metrics->noise_scale = noise_scale_.Images().value_or(kNoMetric);
  // Everything that took time counts, except waiting for other ranks.
  const double seconds = since_last_step_.Restart();
  const double waited = exchange_.times().exposed_seconds + shard_times_.exposed_seconds +
                        own.stages.wait_seconds + roll_call_.waited_seconds();
  return world_->RecordStep(seconds - waited, seconds);
}

// Compressed gradients have noise of their own.
void AllreduceUpdate::AddToNoiseScale(const LossResult& loss, double gradient_norm,
                                      std::span<const RankStep> ranks) {
  if (world_->alone() || compression_ != nullptr || !exchange_.measured_noise()) return;
  if (generation_->run->is_divided()) return;  // no rank has a whole gradient of its own
  NoiseScale::Step step{.batch = static_cast<double>(loss.count),
                        .squares = gradient_norm * gradient_norm};
  for (const RankStep& rank : ranks) {
    // A rank none of whose images could be read has no gradient.
    step.ranks += rank.gradient_squares > 0 ? 1 : 0;
    step.rank_squares += rank.gradient_squares;
  }
  if (step.ranks >= 2) noise_scale_.Add(step);
}

void AllreduceUpdate::Describe(ResumePoint* point) const {
  if (compression_ != nullptr) point->compression = compression_->routes();
}

std::vector<TensorView> AllreduceUpdate::Tensors() const {
  return compression_ != nullptr ? compression_->Tensors() : std::vector<TensorView>();
}

StatusOr<WrittenParts> AllreduceUpdate::WriteParts(const CheckpointDirectory* directory) {
  if (compression_ == nullptr) return WrittenParts{};
  return compression_->WriteParts(generation_->step(), directory);
}

std::vector<int64_t> AllreduceUpdate::PartBytes() const {
  return compression_ != nullptr ? compression_->part_bytes() : std::vector<int64_t>();
}

void AllreduceUpdate::HandOverTo(HandOver* next) const {
  if (compression_ != nullptr) compression_->HandOverTo(next);
}

uint32_t AllreduceUpdate::Checksum(uint32_t previous) const {
  return compression_ != nullptr ? compression_->Checksum(previous) : previous;
}

}  // namespace ringtail
