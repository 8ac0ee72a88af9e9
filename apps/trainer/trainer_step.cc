// One step of training, and what the ranks tell each other about it.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/trainer/trainer.h"
#include "core/logging.h"
#include "core/stop_signal.h"
#include "core/trace.h"
#include "data/image_name.h"
#include "optim/gradient_norm.h"

namespace ringtail {
namespace {

constexpr double kMsPerSecond = 1e3;

}  // namespace

// Sums over every batch of the step and every rank.
StatusOr<Trainer::StepResult> Trainer::ComputeGradients() {
  Progress* const progress = world_->progress();
  StepResult result;
  const int64_t batches = plan_.BatchesOf(step());
  for (int64_t index = 0; index < batches; ++index) {
    progress->Enter(Phase::kDataWait);
    RT_ASSIGN_OR_RETURN(const LoadedBatch loaded, loader_->Next());
    result.wait_seconds += loaded.wait_seconds;
    progress->Enter(Phase::kForward);
    result.loss = gradients_->Run({loaded.images, loaded.labels},
                                  {.step = step(), .index = index, .count = batches}, &exchange_);
  }
  RT_RETURN_IF_ERROR(exchange_.Finish(&result.loss));
  return result;
}

// The scan has left out what was bad when the run began: where whole batches cannot be read, the
// images are gone. A batch of few may be all bad by chance.
Status Trainer::CheckSawImages(int64_t seen) {
  constexpr int64_t kMostLost = 8;
  lost_in_a_row_ =
      seen > 0 ? 0 : lost_in_a_row_ + division_.own.global_batch * plan_.BatchesOf(step());
  if (lost_in_a_row_ < kMostLost) return OkStatus();
  return DataLoss(
      fmt::format("none of the last {} images could be read; is {} (data.path) still there?",
                  lost_in_a_row_, EscapeName(config_.data().path())));
}

Status Trainer::TrainStep() {
  const Stopwatch watch;
  ParameterArena& arena = state_.model()->arena();

  world_->progress()->BeginStep(step() + 1);
  const ScopedSpan step_span("step", "step");
  buffers_before_.assign(arena.buffer_values().begin(), arena.buffer_values().end());
  exchange_.BeginStep(NoiseScale::Measures(step()));
  if (compression_ != nullptr) {
    compression_->BeginStep(step(), plan_.EpochAt(step()), plan_.BatchesOf(step()));
  }
  RT_ASSIGN_OR_RETURN(StepResult result, ComputeGradients());
  world_->progress()->Enter(Phase::kUpdate);
  const LossResult& loss = result.loss;
  RT_RETURN_IF_ERROR(CheckSawImages(loss.count));
  const double mean = 1.0 / static_cast<double>(std::max<int64_t>(loss.count, 1));
  result.gradient_norm = GradientNorm(arena, mean);
  if (!std::isfinite(loss.loss_sum) || !std::isfinite(result.gradient_norm)) {
    return HandleNonFinite();
  }
  const double rate = GrownRate(optim_.config, plan_.growth_run(), plan_.BatchesBefore(step()),
                                plan_.BatchesOf(step()));
  const double clip = ClipFactor(result.gradient_norm, optim_.config.clip_norm());
  state_.optimizer()->Step(step(), rate, mean * clip);
  if (state_.average() != nullptr) state_.average()->Update(step());
  state_.progress.skipped_in_a_row = 0;
  ++state_.progress.step;
  buffers_before_.clear();

  Metrics metrics;
  metrics.loss = loss.loss_sum * mean;
  metrics.accuracy = static_cast<double>(loss.correct) * mean;
  metrics.learning_rate = rate;
  metrics.batch = loss.count;
  metrics.images_per_s = static_cast<double>(loss.count) / watch.Seconds();
  return FinishStep(std::move(metrics), result, watch);
}

// The roll call at the end of a step: who took how long, and whether anybody was told to stop.
Status Trainer::FinishStep(Metrics metrics, const StepResult& result, const Stopwatch& watch) {
  const PassTimes pass = gradients_->times();
  const ExchangeTimes exchange = exchange_.times();
  metrics.step = step();
  metrics.epoch = plan_.EpochAt(step());
  metrics.own = {.batch = division_.own.batch * plan_.BatchesOf(step() - 1),
                 .data_wait_ms = result.wait_seconds * kMsPerSecond,
                 .forward_ms = pass.forward_seconds * kMsPerSecond,
                 .backward_ms = pass.backward_seconds * kMsPerSecond,
                 .exposed_comm_ms = exchange.exposed_seconds * kMsPerSecond,
                 .hidden_comm_ms = exchange.hidden_seconds() * kMsPerSecond,
                 .comm_bytes = exchange_.sent_bytes()};
  if (compression_ != nullptr) {
    const CodingTimes coding = compression_->EndStep(step());
    metrics.own.encode_ms = coding.encode_seconds * kMsPerSecond;
    metrics.own.decode_ms = coding.decode_seconds * kMsPerSecond;
  }
  RT_ASSIGN_OR_RETURN(const std::vector<RankStep> all,
                      world_->Gather(RankStep{.stop_signal = StopSignal(),
                                              .gradient_squares = exchange_.gradient_squares(),
                                              .metrics = metrics.own}));
  for (const RankStep& rank : all) {
    if (agreed_signal_ == 0) agreed_signal_ = static_cast<int>(rank.stop_signal);
    if (!world_->alone()) metrics.ranks.push_back(rank.metrics);
  }
  AddToNoiseScale(result, all);
  metrics.noise_scale = noise_scale_.Images().value_or(kNoMetric);
  const int64_t check = config_.dist().check_every_steps();
  if (check > 0 && step() % check == 0) {
    RT_RETURN_IF_ERROR(CheckState());
  }
  metrics.step_ms = watch.Seconds() * kMsPerSecond;
  // Whatever it was that took the time, if it was not the others.
  const double seconds = since_last_step_.Restart();
  world_->RecordStep(seconds - exchange.exposed_seconds, seconds);
  Record(metrics);
  if (observer_ != nullptr) observer_->OnStep(metrics, plan_);
  return OkStatus();
}

// Compressed gradients have noise of their own.
void Trainer::AddToNoiseScale(const StepResult& result, std::span<const RankStep> ranks) {
  if (world_->alone() || compression_ != nullptr || !exchange_.measured_noise()) return;
  NoiseScale::Step step{.ranks = world_->size(),
                        .batch = static_cast<double>(result.loss.count),
                        .squares = result.gradient_norm * result.gradient_norm};
  for (const RankStep& rank : ranks) step.rank_squares += rank.gradient_squares;
  noise_scale_.Add(step);
}

// What this rank finds in the batches of the step, which are loaded once more; empty: nothing.
StatusOr<std::string> Trainer::WhereNotFiniteHere() {
  const int64_t batches = plan_.BatchesOf(step());
  std::string found;
  SeekTo(step());
  for (int64_t index = 0; index < batches && found.empty(); ++index) {
    RT_ASSIGN_OR_RETURN(const LoadedBatch loaded, loader_->Next());
    found = gradients_->DescribeNonFinite({loaded.images, loaded.labels},
                                          {.step = step(), .index = index, .count = batches});
  }
  SeekTo(step() + 1);
  return found;
}

// The first rank that finds the cause among its own rows tells it.
StatusOr<std::string> Trainer::WhereNotFinite() {
  RT_ASSIGN_OR_RETURN(const std::string own, WhereNotFiniteHere());
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> all, world_->GatherText(own));
  const auto found =
      std::find_if(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
  if (found == all.end()) {
    return std::string("the loss is not finite, though the output of every layer is");
  }
  if (world_->alone()) return *found;
  return fmt::format("{}: {}", world_->Describe(static_cast<int>(found - all.begin())), *found);
}

Status Trainer::HandleNonFinite() {
  TrainingProgress& progress = state_.progress;
  // Batch norm has already mixed this batch into its running statistics: not the cause, an effect.
  std::copy(buffers_before_.begin(), buffers_before_.end(),
            state_.model()->arena().buffer_values().begin());
  if (compression_ != nullptr) compression_->Forget();
  RT_ASSIGN_OR_RETURN(const std::string where, WhereNotFinite());
  if (config_.train().on_nan() == TrainConfig::STOP) {
    not_finite_ = where;
    return OkStatus();
  }
  if (world_->leads()) LogWarning(fmt::format("step {} is left out: {}", step(), where));
  ++progress.step;
  ++progress.skipped_steps;
  buffers_before_.clear();
  Metrics metrics;  // a line without numbers
  metrics.step = step();
  metrics.epoch = plan_.EpochAt(step());
  Record(metrics);
  if (++progress.skipped_in_a_row > kMaxSkippedInARow) {
    not_finite_ = fmt::format("{} (in {} steps running)", where, progress.skipped_in_a_row);
  }
  return OkStatus();
}

}  // namespace ringtail
