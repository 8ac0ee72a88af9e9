#include "dist/planner/step_timetable.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/round.h"
#include "dist/planner/decoded_share.h"

namespace ringtail {
namespace {

// More parts have to be faster by this: a measurement is not exact.
constexpr double kWorthParts = 0.97;
constexpr int64_t kAlignedElements = 16;  // 64 bytes, as in the arena

ParameterKind KindOf(ParameterFacts::Kind kind) {
  switch (kind) {
    case ParameterFacts::CONVOLUTION_WEIGHT:
      return ParameterKind::kConvolutionWeight;
    case ParameterFacts::LINEAR_WEIGHT:
      return ParameterKind::kLinearWeight;
    case ParameterFacts::VECTOR:
      break;
  }
  return ParameterKind::kVector;
}

// a + t (b - a), for each of the times.
ComputeTimes Between(const ComputeTimes& a, const ComputeTimes& b, double t) {
  const auto mix = [t](double x, double y) { return x + t * (y - x); };
  ComputeTimes times{.forward = mix(a.forward, b.forward), .backward = mix(a.backward, b.backward)};
  for (size_t i = 0; i < a.ready.size(); ++i) times.ready.push_back(mix(a.ready[i], b.ready[i]));
  return times;
}

}  // namespace

ComputeTimes Scaled(ComputeTimes times, double factor) {
  times.forward *= factor;
  times.earlier_backward *= factor;
  times.backward *= factor;
  times.update *= factor;
  times.norm *= factor;
  times.average *= factor;
  times.preparing *= factor;
  for (double& ready : times.ready) ready *= factor;
  for (double& prepare : times.prepare) prepare *= factor;
  return times;
}

StepTimetable::StepTimetable(const PlannerFacts& facts, double cores) {
  RT_CHECK(cores > 0 && facts.step_size() > 0, "a timetable needs cores and measured steps");
  const double scale = facts.cores() / cores;
  const ComputeTimes update{.update = facts.update_s(),
                            .norm = facts.norm_s(),
                            .average = facts.average_s(),
                            .prepare = {facts.prepare_s().begin(), facts.prepare_s().end()},
                            .preparing = facts.preparing_s()};
  update_ = Scaled(update, scale);
  accumulate_ = facts.accumulate_s() * scale;
  merge_ = facts.merge_s() * scale;
  data_wait_ = facts.data_wait_s() * scale;
  deviation_ = facts.step_deviation();
  load_ = facts.load_cpu_s() / cores;
  decode_ = facts.decode_cpu_s() / cores;
  epochs_ = facts.epochs();
  shards_ = facts.shards();
  whole_ = facts.whole_steps();
  fewest_in_part_ =
      std::max(facts.step(0).batch(), facts.buffer_elements() > 0 ? kFewestForStatistics : 1);
  cached_share_ = facts.cached_share();
  for (const StepFacts& step : facts.step()) {
    ComputeTimes times{.forward = step.forward_s(), .backward = step.backward_s()};
    times.ready.assign(step.finish_s().begin(), step.finish_s().end());
    measured_.push_back(
        {.batch = static_cast<double>(step.batch()), .times = Scaled(std::move(times), scale)});
  }
}

std::vector<int64_t> StepTimetable::EqualParts(int64_t batch) const {
  RT_CHECK(batch > 0, "a step has images");
  const auto largest = static_cast<int64_t>(measured_.back().batch);
  std::vector<int64_t> numbers = {CeilDivide(batch, largest)};
  if (whole_) return numbers;
  for (int64_t parts = numbers.front() + 1; parts * fewest_in_part_ <= batch; ++parts) {
    if (batch % parts == 0) numbers.push_back(parts);
  }
  return numbers;
}

int64_t StepTimetable::PartsOf(int64_t batch) const {
  const auto seconds = [&](int64_t parts) {
    const ComputeTimes times = OfParts(static_cast<double>(batch), parts);
    return times.forward + times.earlier_backward + times.backward;
  };
  const std::vector<int64_t> numbers = EqualParts(batch);
  int64_t best = numbers.front();
  for (const int64_t parts : numbers) {
    if (seconds(parts) < kWorthParts * seconds(best)) best = parts;
  }
  return best;
}

ComputeTimes StepTimetable::TimesAt(int64_t batch, int64_t ranks, int64_t parts) const {
  ComputeTimes times = OfParts(static_cast<double>(batch), parts);
  times.update = update_.update;
  times.norm = update_.norm;
  times.average = update_.average;
  times.prepare = update_.prepare;
  times.preparing = update_.preparing;
  const double computing = times.forward + times.earlier_backward + times.backward + times.update;
  const double decoded = ranks == shards_ ? DecodedShareOfShard(ranks, epochs_, cached_share_)
                                          : DecodedShare(ranks, epochs_, cached_share_);
  const double image = load_ + decode_ * decoded;
  return Scaled(std::move(times), 1 + image * static_cast<double>(batch) / computing);
}

ComputeTimes StepTimetable::OfParts(double batch, int64_t count) const {
  const auto parts = static_cast<double>(count);
  const double part = std::min(batch / parts, measured_.back().batch);
  ComputeTimes times;
  const auto above = std::ranges::lower_bound(measured_, part, {}, &Measured::batch);
  if (above == measured_.begin()) {
    // The whole timetable shrinks by one factor, so that its order stays.
    const double proportional = part / above->batch;
    double factor = proportional;
    if (measured_.size() > 1) {
      const Measured &first = measured_[0], &second = measured_[1];
      const double whole = first.times.forward + first.times.backward;
      const double slope =
          (second.times.forward + second.times.backward - whole) / (second.batch - first.batch);
      factor = std::clamp(1 - slope * (first.batch - part) / whole, proportional, 1.0);
    }
    times = Scaled(above->times, factor);
  } else {
    const Measured& below = *std::prev(above);
    times = Between(below.times, above->times, (part - below.batch) / (above->batch - below.batch));
  }
  times.earlier_backward = (parts - 1) * (times.backward + accumulate_);
  times.forward *= parts;
  return times;
}

std::vector<Parameter> ParametersOf(const PlannerFacts& facts) {
  std::vector<Parameter> parameters;
  int64_t offset = 0;
  for (const ParameterFacts& p : facts.parameter()) {
    Parameter parameter{.spec = {.name = p.name(),
                                 .shape = Shape(p.dimension().begin(), p.dimension().end()),
                                 .kind = KindOf(p.kind())},
                        .offset = offset};
    parameter.elements = NumElements(parameter.spec.shape);
    offset = RoundUp(offset + parameter.elements, kAlignedElements);
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

}  // namespace ringtail
