#include "apps/plan/prediction_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "core/logging.h"
#include "core/text/counted.h"
#include "core/units.h"

namespace ringtail {

void PredictionReport::Expect(PredictPeriod predict) {
  predict_ = std::move(predict);
  compared_.clear();
  image_size_ = 0;
}

// Sizes follow one another; a size that comes once more has been compared.
void PredictionReport::BeginSize(int64_t image_size) {
  image_size_ = image_size;
  done_ = compared_.contains(image_size);
  prediction_.reset();
  steps_ = 0;
  summing_ = false;
  sums_ = {};
}

// Sums begin anew.
void PredictionReport::Predict(int local_steps) {
  auto predicted = predict_(image_size_, local_steps);
  if (!predicted.ok()) {
    done_ = true;
    return;
  }
  prediction_ = *predicted;
  predicted_of_ = local_steps;
  summing_ = false;
}

void PredictionReport::OnStep(const Metrics& step, const TrainingPlan& plan) {
  next_->OnStep(step, plan);
  if (!predict_) return;
  const int64_t image_size = plan.PhaseAt(step.step - 1).image_size;
  if (image_size != image_size_) BeginSize(image_size);
  if (done_) return;
  ++steps_;
  if (summing_) {
    ++sums_.steps;
    sums_.data += step.own.data_wait_ms;
    sums_.forward += step.own.forward_ms;
    sums_.backward += step.own.backward_ms;
    sums_.exchange += step.own.exposed_comm_ms;
    sums_.whole += step.step_ms;
  }
  // Ranks that take steps of their own say nothing of the others.
  if (!step.ranks.empty()) AtBoundary(step.step, 0);
}

// An overlapped round is heard of at the end of the next one: what it left exposed lies there, too.
void PredictionReport::OnRound(const Metrics& round) {
  next_->OnRound(round);
  if (!predict_ || done_) return;
  if (summing_) sums_.exchange += round.own.exposed_comm_ms;
  AtBoundary(round.step, static_cast<int>(round.local_steps));
}

void PredictionReport::OnBatchGrowth(const std::string& description) {
  next_->OnBatchGrowth(description);
  if (image_size_ > 0) predict_ = nullptr;  // steps have begun
}

void PredictionReport::OnEvaluation(const Metrics& evaluation, bool best_so_far) {
  next_->OnEvaluation(evaluation, best_so_far);
}

// After steps that were exchanged together: a round of local steps, or a step of all ranks (0).
void PredictionReport::AtBoundary(int64_t step, int local_steps) {
  if (!prediction_ || predicted_of_ != local_steps) Predict(local_steps);
  if (!prediction_ || done_) return;
  if (!summing_ && steps_ >= kWarmUpSteps) {
    summing_ = true;
    sums_ = {};
  }
  if (sums_.steps < kComparedSteps) return;
  Metrics metrics;
  metrics.kind = Metrics::Kind::kPrediction;
  metrics.step = step;
  metrics.compared_steps = sums_.steps;
  metrics.image_size = image_size_;
  metrics.terms = Terms();
  done_ = true;
  compared_.insert(image_size_);
  LogInfo(DescribeComparison(metrics.compared_steps, image_size_, metrics.terms));
  record_(metrics);
}

std::vector<PredictedTerm> PredictionReport::Terms() const {
  const PredictedSeconds& s = prediction_->seconds;
  const double predicted = kMsPerSecond / prediction_->choice.period;
  const double measured = 1 / static_cast<double>(sums_.steps);
  // What layers wait for is measured within them.
  const double within = (s.activations + s.batch_norm) / 2;
  const double rest = sums_.whole - sums_.data - sums_.forward - sums_.backward - sums_.exchange;
  return {
      {"data", s.data_wait * predicted, sums_.data * measured},
      {"forward", (s.forward + within) * predicted, sums_.forward * measured},
      {"backward", (s.backward + s.contention + within) * predicted, sums_.backward * measured},
      {"exposed exchange", (s.waiting + s.wire + s.coding) * predicted, sums_.exchange * measured},
      {"update", (s.update + s.merge + s.roll_call) * predicted, rest * measured},
      {"step", s.sum() * predicted, sums_.whole * measured}};
}

std::string DescribeComparison(int64_t steps, int64_t image_size,
                               const std::vector<PredictedTerm>& terms) {
  const PredictedTerm& step = terms.back();
  std::vector<std::string> words, far_off;
  for (const PredictedTerm& term : terms) {
    if (&term == &step) break;
    words.push_back(fmt::format("{} {:.1f} ({:.1f} predicted)", term.name, term.measured_ms,
                                term.predicted_ms));
    const double more = (term.measured_ms - term.predicted_ms) / step.measured_ms;
    if (std::fabs(more) > PredictionReport::kFarOff) {
      far_off.push_back(fmt::format("{} takes {:.0f} % of the step {} than predicted", term.name,
                                    std::fabs(more) * kPercent, more > 0 ? "longer" : "less"));
    }
  }
  const std::string verdict = far_off.empty() ? "no term is off by more than 10 % of the step"
                                              : fmt::format("{}", fmt::join(far_off, ", "));
  return fmt::format(
      "{} with images of {} pixels took {:.1f} ms each, {:.1f} predicted ({:+.0f} %): {}; {}",
      Counted(steps, "step"), image_size, step.measured_ms, step.predicted_ms,
      (step.predicted_ms / step.measured_ms - 1) * kPercent, fmt::join(words, ", "), verdict);
}

}  // namespace ringtail
