#include "apps/trainer/local/local_update.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/trainer/local/round_report.h"
#include "core/stop_signal.h"
#include "core/units.h"
#include "optim/batch_growth.h"
#include "optim/gradient_norm.h"
#include "optim/weight_average.h"

namespace ringtail {

LocalUpdate::LocalUpdate(const Generation* generation)
    : generation_(generation),
      world_(generation->world),
      progress_(world_->progress()),
      period_(generation->config().dist().local(), generation->optim.config, &generation->plan),
      lost_images_(generation->config().data().path()) {}

StatusOr<StepWork> LocalUpdate::BeginStep() {
  if (dense_ != nullptr) return dense_->BeginStep();
  since_step_.Restart();
  if (synchronized_) BeginRound();
  const std::span<const float> statistics = generation_->arena().buffer_values();
  statistics_before_.assign(statistics.begin(), statistics.end());
  return StepWork();
}

void LocalUpdate::BeginRound() {
  synchronized_ = false;
  round_->Swap();  // back to this rank's own
  if (world_->alone()) own_.Keep();
  round_begin_ = step();
  round_end_ = period_.RoundEnd(round_begin_);
  if (offered_.steps > 0) StartExchange();
}

GradientListener* LocalUpdate::listener() {
  return dense_ != nullptr ? dense_->listener() : &progress_;
}

StatusOr<StepResult> LocalUpdate::FinishStep(const OwnStep& own) {
  if (dense_ != nullptr) return FinishDenseStep(own);
  StepResult result = std::exchange(continued_, {});
  result.counted = true;
  RT_RETURN_IF_ERROR(Update(own, &result));
  double exposed = 0;
  if (step() == round_end_) {
    const Stopwatch waiting;
    RT_RETURN_IF_ERROR(EndRound(&result));
    exposed = waiting.Seconds();
  }
  if (!synchronized_) RT_RETURN_IF_ERROR(HearOfTheEnd());
  const double seconds = since_step_.Seconds();
  result.metrics.images_per_s = static_cast<double>(generation_->division.own.global_batch *
                                                    generation_->plan.BatchesOf(step() - 1)) /
                                seconds;
  RT_RETURN_IF_ERROR(world_->RecordStep(seconds - exposed, seconds));
  return result;
}

// The steps of a round ask no other rank. A survivor that heard of a loss at the end of the round
// might not live to write its checkpoint (apps/session/last_word.h).
Status LocalUpdate::HearOfTheEnd() {
  Transport* const transport = world_->transport();
  if (transport->EndCause().ok()) return OkStatus();
  return world_->Run([transport](Communicator* /*ranks*/) { return transport->EndCause(); });
}

StatusOr<StepResult> LocalUpdate::FinishDenseStep(const OwnStep& own) {
  RT_ASSIGN_OR_RETURN(StepResult result, dense_->FinishStep(own));
  if (!RoundsFollow()) {
    if (!result.counted) return result;
    StepResult before = std::exchange(continued_, {});
    result.rounds = std::move(before.rounds);
    result.not_finite = std::move(before.not_finite);
    result.left_out = before.left_out;
    return result;
  }
  // A step that does not count is over, too: the trainer leaves it out.
  if (step() + (result.counted ? 0 : 1) < period_.first_step()) return result;
  agreed_signal_ = world_->alone() ? 0 : dense_->stop_signal();
  dense_.reset();  // residuals of compressed gradients end with it
  RT_RETURN_IF_ERROR(CreateRounds({}));
  return result;
}

Status LocalUpdate::Update(const OwnStep& own, StepResult* result) {
  const TrainingPlan& plan = generation_->plan;
  TrainingState& state = generation_->state();
  const BatchShare& share = generation_->division.own;
  const int64_t at = step(), batches = plan.BatchesOf(at);
  world_->progress()->Enter(Phase::kUpdate);
  RT_RETURN_IF_ERROR(lost_images_.Check(share.batch * batches, own.loss.count));
  const double mean = 1.0 / static_cast<double>(std::max<int64_t>(own.loss.count, 1));
  const double norm = GradientNorm(generation_->arena(), mean);
  const double rate = RateOf(at);
  sums_.expected += static_cast<double>(share.global_batch * batches) / world_->size();
  ++sums_.steps;
  if (std::isfinite(own.loss.loss_sum) && std::isfinite(norm)) {
    const double clip = ClipFactor(norm, generation_->optim.config.clip_norm());
    state.optimizer()->Step(at, rate, mean * clip);
    sums_.own.images += static_cast<double>(own.loss.count);
    sums_.own.loss += own.loss.loss_sum;
    sums_.own.correct += static_cast<double>(own.loss.correct);
  } else {
    RT_RETURN_IF_ERROR(LeaveOut(own));
  }
  ++state.progress.step;
  sums_.step_seconds += since_step_.Seconds();
  result->metrics = MetricsOfStep(own);
  result->metrics.step = step();
  result->metrics.epoch = plan.EpochAt(step());
  result->metrics.learning_rate = rate;
  return OkStatus();
}

double LocalUpdate::RateOf(int64_t step) const {
  const TrainingPlan& plan = generation_->plan;
  return GrownRate(generation_->optim.config, plan.growth_run(), plan.BatchesBefore(step),
                   plan.BatchesOf(step));
}

// The running statistics have taken in a batch that may have a NaN.
Status LocalUpdate::LeaveOut(const OwnStep& own) {
  if (sums_.not_finite.empty()) {
    RT_ASSIGN_OR_RETURN(sums_.not_finite, own.find_not_finite());
    if (sums_.not_finite.empty()) {
      sums_.not_finite = "the loss is not finite, though the output of every layer is";
    }
  }
  ++sums_.own.left_out;
  const std::span<float> statistics = generation_->arena().buffer_values();
  std::ranges::copy(statistics_before_, statistics.begin());
  return OkStatus();
}

Status LocalUpdate::EndRound(StepResult* result) {
  if (exchange_->under_way()) RT_RETURN_IF_ERROR(FinishExchange(result));
  offered_ = std::exchange(sums_, {});
  offered_begin_ = round_begin_;
  const bool last = step() >= generation_->plan.total_steps();
  if (!round_->overlapped() || last) {
    StartExchange();
    RT_RETURN_IF_ERROR(FinishExchange(result));
  }
  round_->Swap();
  WeightAverage* const average = generation_->state().average();
  if (average != nullptr) average->Update(step() - 1, step() - round_begin_);
  synchronized_ = true;
  return OkStatus();
}

void LocalUpdate::StartExchange() {
  RankRound& own = offered_.own;
  own.stop_signal = StopSignal();
  own.weight = offered_.Weight();
  own.squares = round_->Take(own.weight);
  if (own.weight == 0 || !std::isfinite(own.squares)) TakeNothing(&own);
  own.step_seconds = offered_.MeanStepSeconds();
  own.exchange_seconds = last_exchange_seconds_;
  if (compression_ != nullptr) {
    compression_->BeginStep(rounds_, generation_->plan.EpochAt(offered_begin_), 1);
  }
  exchange_->Start(own);
}

// Its steps were left out, or the last of them has made a weight that is not finite.
void LocalUpdate::TakeNothing(RankRound* own) {
  if (!std::isfinite(own->squares)) {
    ++own->left_out;
    if (offered_.not_finite.empty()) offered_.not_finite = "a weight after its update";
  }
  own->weight = own->squares = 0;
  round_->TakeNothing();
}

Status LocalUpdate::FinishExchange(StepResult* result) {
  RT_ASSIGN_OR_RETURN(const std::vector<RankRound> ranks, exchange_->Finish());
  RT_RETURN_IF_ERROR(CountLeftOut(ranks, result));
  // Nothing fails from here on, so that Undo finds what it expects.
  world_->progress()->Enter(Phase::kUpdate);
  double weights = 0;
  for (const RankRound& rank : ranks) {
    weights += rank.weight;
    if (agreed_signal_ == 0) agreed_signal_ = static_cast<int>(rank.stop_signal);
  }
  const double squares = round_->Merge(rounds_, weights, OfferedRate());
  ++rounds_;
  last_exchange_seconds_ = exchange_->exchange_seconds();
  LocalPeriod::Reading reading = ReadingOf(ranks);
  // Through codecs the sum is not that of the differences alone.
  if (compression_ == nullptr) reading.cosine = MeanCosine(ranks, squares * weights * weights);
  const PeriodProgress before = period_.progress();
  period_.AfterRound(offered_begin_, reading);
  if (world_->leads()) LogPeriod(before, period_.progress(), period_.decided_by(), step());
  result->rounds.push_back(RoundMetrics(ranks, reading.cosine));
  offered_ = {};
  return OkStatus();
}

Metrics LocalUpdate::RoundMetrics(std::span<const RankRound> ranks, std::optional<double> cosine) {
  // From the merge before to this one; of the first, which no other came before, its steps and what was waited
  // for. The last two rounds of a run are merged at once.
  const double since_merge = since_merge_.Restart();
  double seconds = offered_.step_seconds + exchange_->times().exposed_seconds;
  if (offered_.step_seconds == 0) seconds = kNoMetric;  // it travelled when the run was resumed
  if (rounds_of_this_run_++ > 0) seconds = std::max(since_merge, offered_.step_seconds);
  Metrics metrics = MetricsOfRound(ranks, seconds, *exchange_);
  metrics.step = step();
  metrics.epoch = generation_->plan.EpochAt(step());
  metrics.learning_rate = OfferedRate();
  metrics.local_steps = offered_.steps;
  metrics.cosine = cosine.value_or(kNoMetric);
  if (compression_ != nullptr) {
    const CodingTimes coding = compression_->EndStep(rounds_);
    metrics.own.encode_ms = coding.encode_seconds * kMsPerSecond;
    metrics.own.decode_ms = coding.decode_seconds * kMsPerSecond;
  }
  return metrics;
}

Status LocalUpdate::CountLeftOut(std::span<const RankRound> ranks, StepResult* result) {
  int64_t left_out = 0;
  for (const RankRound& rank : ranks) left_out += rank.left_out;
  TrainingProgress& progress = generation_->progress();
  if (left_out == 0) {
    progress.skipped_in_a_row = 0;
    return OkStatus();
  }
  RT_ASSIGN_OR_RETURN(const std::string first, FirstNotFinite(world_, ranks, offered_.not_finite));
  progress.skipped_steps += left_out;
  ++progress.skipped_in_a_row;
  if (result->not_finite.empty()) result->not_finite = first;
  result->left_out += left_out;
  return OkStatus();
}

// An exchange that has failed leaves the common weights as they were: those of round_begin_. (At the
// end of the run the round before may be merged by then, which is what the steps up to round_begin_
// have done.) What several ranks have of their own is lost with the world; one rank's checkpoint is
// whole.
void LocalUpdate::Undo() {
  if (dense_ != nullptr) return dense_->Undo();
  if (synchronized_) return;
  round_->Forget();
  if (world_->alone()) own_.TakeBack();
  generation_->progress().step = round_begin_;
  offered_ = {};  // of a round that is lost, or of the steps that are taken back
  synchronized_ = true;
}

int LocalUpdate::stop_signal() const {
  if (world_->alone()) return StopSignal();
  return dense_ != nullptr ? dense_->stop_signal() : agreed_signal_;
}

std::string LocalUpdate::Advice() const { return dense_ != nullptr ? dense_->Advice() : ""; }

}  // namespace ringtail
