#include "apps/trainer/trainer.h"

#include <fmt/core.h>

#include <map>
#include <string>
#include <utility>

#include "apps/trainer/sharding/whole_state.h"
#include "core/logging.h"
#include "core/stopwatch.h"
#include "core/text/counted.h"
#include "core/trace.h"
#include "core/units.h"
#include "optim/batch_growth.h"
#include "optim/weight_average.h"

namespace ringtail {
namespace {

// Before the first step of a larger batch.
void TellOfGrowth(const Generation& generation) {
  const TrainingPlan& plan = generation.plan;
  const size_t stage = plan.StageBeginningAt(generation.step());
  if (stage == 0 || generation.observer() == nullptr) return;
  generation.observer()->OnBatchGrowth(
      DescribeStage(generation.optim.config, plan.growth_run(), plan.stages(), stage));
}

// Freezes what is frozen after the point's steps: layers are unfrozen before a step, after the
// checkpoint of the step before. All ranks.
Status FreezeAsAt(const ResumePoint& point, const Generation& generation) {
  if (point.in_memory || generation.config().train().freeze_epochs() == 0) return OkStatus();
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> done,
                      generation.world->ShareNumbers({point.progress.step}, point.source_rank));
  const TrainingPlan& plan = generation.plan;
  return generation.run->Freeze(done[0] == 0 || !plan.IsThawed(done[0] - 1), plan.thaw_step());
}

// One rank that continues rounds of several merges the one that travelled, and what codecs had not
// sent. Where no step follows, the final network would be weights that were never evaluated.
void LeaveRounds(ResumePoint* point) {
  const bool rounds = point->local.rounds > 0 || point->local.offers > 0;
  if (!rounds || point->division.batches.size() <= 1) return;
  point->local.offers = 0;
  point->parts = {};
  point->division.batches.clear();  // of several ranks: it would be warned of what they have lost
}

}  // namespace

StatusOr<std::unique_ptr<Trainer>> Trainer::Create(TrainingRun* run, ResumePoint point,
                                                   TrainingWorld* world) {
  RT_RETURN_IF_ERROR(CheckSameRun(point, run->config(), run->options.data->Identity()));
  RT_ASSIGN_OR_RETURN(Generation generation, Generation::Create(run, point, world));
  RT_RETURN_IF_ERROR(FreezeAsAt(point, generation));
  if (point.tensors) {
    RT_RETURN_IF_ERROR(run->state.Restore(*point.tensors).Annotate(point.path));
    run->state.progress = point.progress;
  }
  if (run->state.average() != nullptr) {
    run->state.average()->set_decay(generation.optim.config.ema_decay());
  }
  return std::unique_ptr<Trainer>(new Trainer(std::move(generation), std::move(point)));
}

Trainer::Trainer(Generation generation, ResumePoint point)
    : generation_(std::move(generation)),
      point_(std::move(point)),
      gradients_(&generation_),
      keeper_(&generation_) {}

// All that is the same on all ranks is the source rank's.
Status Trainer::Begin() {
  RT_RETURN_IF_ERROR(keeper_.Begin(point_));
  RT_RETURN_IF_ERROR(KeepAllreduces());
  RT_RETURN_IF_ERROR(ShareState());
  if (generation_.world->alone() && IsFinished()) LeaveRounds(&point_);
  RT_ASSIGN_OR_RETURN(update_, UpdatePath::Create(&generation_, point_));
  point_ = {};  // frees its tensors
  keeper_.Keep(update_.get());
  if (step() > 0) RT_RETURN_IF_ERROR(keeper_.Compare());
  // What was due since then and is not done is done after this very step: an evaluation may have
  // been broken off, and is due within a round where ranks take steps of their own.
  synchronized_step_ = generation_.progress().evaluated_step;
  return gradients_.PreparePhases();
}

// Replicas of a stage hold the same once the first of them has its part.
Status Trainer::ShareState() {
  TrainingWorld* const world = generation_.world;
  TrainingState* const state = &generation_.state();
  if (generation_.link == nullptr) {
    RT_RETURN_IF_ERROR(world->ShareState(state, point_.source_rank));
    return generation_.run->ShareParts(world, nullptr, point_);
  }
  RT_RETURN_IF_ERROR(world->ShareProgress(&state->progress, point_.source_rank));
  RT_RETURN_IF_ERROR(generation_.run->ShareParts(world, generation_.link.get(), point_));
  return generation_.replicas->ShareState(state, 0);
}

// In a world of another size sums have another order whatever their algorithms.
Status Trainer::KeepAllreduces() {
  TrainingWorld* const world = generation_.replicas;
  const bool same_world = std::ssize(point_.division.batches) == world->size();
  const bool pipeline = generation_.link != nullptr;  // one of its ranks knows the checkpoint
  return world->KeepAllreduces(
      same_world && !pipeline ? point_.allreduces : std::map<int64_t, std::string>(),
      pipeline ? 0 : point_.source_rank);
}

StatusOr<TrainingOutcome> Trainer::Train() {
  RT_RETURN_IF_ERROR(Begin());
  auto outcome = TrainSteps();
  const bool ended = outcome.ok() && outcome->kind != TrainingOutcome::Kind::kThaws;
  if (ended) update_->End();
  return outcome;
}

StatusOr<TrainingOutcome> Trainer::TrainSteps() {
  while (true) {
    if (update_->synchronized()) {
      const int64_t since = std::exchange(synchronized_step_, step());
      RT_RETURN_IF_ERROR(EvaluateIfDue(since));
      const int signal = update_->stop_signal();
      RT_RETURN_IF_ERROR(SaveIfDue(since, signal != 0));
      if (signal != 0) {
        return StoppedBy(signal, generation_.progress(), generation_.plan.total_steps(),
                         keeper_.saved_step());
      }
      if (IsFinished()) return Finish();
      if (ThawsNow()) return Thaws();
    }
    const Status entered = EnterStep();
    // Told to stop while it measured: alone, as several ranks measure before the first step.
    if (entered.code() == StatusCode::kCancelled && update_->stop_signal() != 0) continue;
    RT_RETURN_IF_ERROR(Status(entered));
    const std::string where = fmt::format("in step {}", step() + 1);
    RT_RETURN_IF_ERROR(TrainStep().Annotate(where));
    if (!not_finite_.empty()) {
      return NotFinite(not_finite_, generation_.progress(), keeper_.saved_step());
    }
  }
}

// A checkpoint between step and evaluation leaves the evaluation due, so that a resumed run makes
// up for it.
Status Trainer::EvaluateIfDue(int64_t since) {
  const bool due = generation_.plan.EvaluationIsDue(since, step());
  if (!due || generation_.progress().evaluated_step == step()) return OkStatus();
  return keeper_.Evaluate();
}

Status Trainer::SaveIfDue(int64_t since, bool stopping) {
  const bool due = stopping || generation_.plan.CheckpointIsDue(since, step());
  if (!due || keeper_.offered_step() == step()) return OkStatus();
  return keeper_.SaveCheckpoint(/*best=*/false);
}

StatusOr<TrainingOutcome> Trainer::Finish() {
  // No later loss shows what the last update did.
  const Status finite = CheckWeightsTogether(generation_.world, generation_.state());
  if (!finite.ok() && generation_.world->lost()) return finite;
  if (!finite.ok()) {
    return NotFinite(finite.message(), generation_.progress(), keeper_.saved_step());
  }
  RT_RETURN_IF_ERROR(keeper_.Compare());
  RT_RETURN_IF_ERROR(keeper_.SaveFinal());
  const RunDirectory* const directory = generation_.run->options.directory;
  TrainingOutcome outcome =
      Finished(KindOfEnd(), generation_.progress(), generation_.plan.total_steps(),
               generation_.config().train(), directory != nullptr ? directory->path() : "");
  outcome.advice = update_->Advice();
  return outcome;
}

Status Trainer::EnterStep() {
  RT_RETURN_IF_ERROR(gradients_.EnterPhase());
  TellOfGrowth(generation_);
  return OkStatus();
}

Status Trainer::TrainStep() {
  const Stopwatch watch;
  const ScopedSpan span("step", "step");
  generation_.world->progress()->BeginStep(step() + 1);
  RT_ASSIGN_OR_RETURN(const StepWork work, update_->BeginStep());
  OwnStep own;
  if (work.kind != StepWork::Kind::kNothing) {
    RT_ASSIGN_OR_RETURN(own, gradients_.Compute(work, update_->listener()));
  }
  RT_ASSIGN_OR_RETURN(StepResult result, update_->FinishStep(own));
  if (!result.counted) return LeaveStepOut();
  if (update_->synchronized() && generation_.plan.ComparisonIsDue(synchronized_step_, step())) {
    RT_RETURN_IF_ERROR(keeper_.Compare());
  }
  result.metrics.step_ms = watch.Seconds() * kMsPerSecond;
  Tell(result);
  HearOfStepsLeftOut(result);
  return OkStatus();
}

void Trainer::Tell(const StepResult& result) {
  if (result.silent) return;
  keeper_.Record(result.metrics);
  for (const Metrics& round : result.rounds) keeper_.Record(round);
  if (generation_.observer() == nullptr) return;
  generation_.observer()->OnStep(result.metrics, generation_.plan);
  for (const Metrics& round : result.rounds) generation_.observer()->OnRound(round);
}

// Of ranks that take steps of their own.
void Trainer::HearOfStepsLeftOut(const StepResult& result) {
  if (result.left_out == 0) return;
  const int64_t rounds = generation_.progress().skipped_in_a_row;
  if (generation_.config().train().on_nan() == TrainConfig::STOP) {
    not_finite_ = result.not_finite;
  } else if (rounds > kMaxSkippedInARow) {
    not_finite_ = fmt::format("{} (in {} rounds in a row)", result.not_finite, rounds);
  } else if (generation_.world->leads()) {
    LogWarning(fmt::format("up to step {}, {} left out: {}", step(),
                           Counted(result.left_out, "step"), result.not_finite));
  }
}

// After a step that does not count, because it met a NaN or infinity.
Status Trainer::LeaveStepOut() {
  RT_ASSIGN_OR_RETURN(const std::string where, gradients_.WhereNotFinite());
  if (generation_.config().train().on_nan() == TrainConfig::STOP) {
    not_finite_ = where;
    return OkStatus();
  }
  if (generation_.world->leads()) LogWarning(fmt::format("step {} is left out: {}", step(), where));
  TrainingProgress& progress = generation_.progress();
  ++progress.step;
  ++progress.skipped_steps;
  Metrics metrics;  // a line without numbers
  metrics.step = step();
  metrics.epoch = generation_.plan.EpochAt(step());
  keeper_.Record(metrics);
  if (++progress.skipped_in_a_row > kMaxSkippedInARow) {
    not_finite_ = fmt::format("{} (in {} steps in a row)", where, progress.skipped_in_a_row);
  }
  return OkStatus();
}

// What comes next does as if it had resumed from this checkpoint.
StatusOr<TrainingOutcome> Trainer::Thaws() {
  if (step() > 0 && keeper_.offered_step() != step()) {
    RT_RETURN_IF_ERROR(keeper_.SaveCheckpoint(/*best=*/false));
  }
  return TrainingOutcome{.kind = TrainingOutcome::Kind::kThaws};
}

HandOver Trainer::HandOverInMemory() const {
  HandOver next{.saved_step = keeper_.saved_step()};
  update_->HandOverTo(&next);
  return next;
}

bool Trainer::ThawsNow() const {
  return generation_.run->frozen && generation_.plan.IsThawed(step());
}

// The same on all ranks.
bool Trainer::IsOutOfPatience() const {
  const TrainingProgress& progress = generation_.progress();
  const int64_t patience = generation_.config().train().patience();
  if (patience == 0 || progress.best_step < 0) return false;
  const int64_t unimproved =
      progress.unimproved >= 0
          ? progress.unimproved
          : generation_.plan.EvaluationsBetween(progress.best_step, progress.evaluated_step);
  return unimproved >= patience;
}

TrainingOutcome::Kind Trainer::KindOfEnd() const {
  if (step() >= generation_.plan.total_steps()) return TrainingOutcome::Kind::kFinished;
  return IsOutOfPatience() ? TrainingOutcome::Kind::kOutOfPatience
                           : TrainingOutcome::Kind::kReachedAccuracy;
}

bool Trainer::IsFinished() const {
  const double until = generation_.config().train().until_accuracy();
  return step() >= generation_.plan.total_steps() || IsOutOfPatience() ||
         (until > 0 && generation_.progress().best_accuracy >= until);
}

}  // namespace ringtail
