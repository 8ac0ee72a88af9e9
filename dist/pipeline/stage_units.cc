#include "dist/pipeline/stage_units.h"

#include <algorithm>
#include <limits>

#include "core/check.h"

namespace ringtail {

StageUnits::StageUnits(const PartitionProblem& problem)
    : problem_(problem), forward_s_{0}, backward_s_{0}, fixed_bytes_{0}, kept_bytes_{0} {
  RT_CHECK(!problem.layers.empty(), "a pipeline has layers");
  double forward = 0, backward = 0;
  int64_t fixed = 0, kept = 0;
  const auto count = static_cast<int>(problem.layers.size());
  for (int i = 0; i < count; ++i) {
    const PipelineLayer& layer = problem.layers[i];
    RT_CHECK(layer.forward_s >= 0 && layer.backward_s >= 0 && layer.fixed_bytes >= 0 &&
                 layer.kept_bytes >= 0,
             "what a layer costs is not negative");
    forward += layer.forward_s;
    backward += layer.backward_s;
    fixed += layer.fixed_bytes;
    kept += layer.kept_bytes;
    if (!layer.may_cut_after && i + 1 < count) continue;
    last_layers_.push_back(i);
    forward_s_.push_back(forward);
    backward_s_.push_back(backward);
    fixed_bytes_.push_back(fixed);
    kept_bytes_.push_back(kept);
  }
}

StageCost StageUnits::CostOf(int first, int last) const {
  return {.forward_s = forward_s_[last + 1] - forward_s_[first],
          .backward_s = backward_s_[last + 1] - backward_s_[first],
          .kept_bytes = kept_bytes_[last + 1] - kept_bytes_[first]};
}

double StageUnits::ComputeSeconds(int first, int last) const {
  const StageCost cost = CostOf(first, last);
  return cost.forward_s + cost.backward_s;
}

double StageUnits::PortSeconds(int first, int last) const {
  int64_t sent = 0, received = 0;
  if (first > 0) {
    received += Crossing(first - 1).activation_bytes;
    sent += Crossing(first - 1).gradient_bytes;
  }
  if (last + 1 < size()) {
    sent += Crossing(last).activation_bytes;
    received += Crossing(last).gradient_bytes;
  }
  return static_cast<double>(std::max(sent, received)) * problem_.link.seconds_per_byte;
}

double StageUnits::RoundTripSeconds(int unit) const {
  double seconds = 0;
  for (const int64_t bytes : {Crossing(unit).activation_bytes, Crossing(unit).gradient_bytes}) {
    seconds += SecondsOfMessage(bytes, problem_.link);
  }
  return seconds;
}

int64_t StageUnits::CrossingBytes(int unit) const {
  return Crossing(unit).activation_bytes + Crossing(unit).gradient_bytes;
}

int64_t StageUnits::MemoryBytes(int stage, int first, int last) const {
  int64_t messages = 0;
  if (first > 0) messages += CrossingBytes(first - 1);
  if (last + 1 < size()) messages += CrossingBytes(last);
  return fixed_bytes_[last + 1] - fixed_bytes_[first] +
         MostAlive(problem_.shape, stage) * CostOf(first, last).kept_bytes +
         problem_.slots * messages;
}

bool StageUnits::Fits(int stage, int first, int last) const {
  return problem_.memory_limit_bytes == 0 ||
         MemoryBytes(stage, first, last) <= problem_.memory_limit_bytes;
}

PipelinePartition StageUnits::Price(const std::vector<int>& last_units) const {
  PipelinePartition partition;
  partition.costs.link = problem_.link;
  partition.costs.slots = problem_.slots;
  int first = 0;
  for (int s = 0; s < stages(); ++s) {
    const int last = last_units[s];
    partition.last_layers.push_back(LastLayer(last));
    partition.memory_bytes.push_back(MemoryBytes(s, first, last));
    partition.costs.stages.push_back(CostOf(first, last));
    if (s + 1 < stages()) partition.costs.boundaries.push_back(Crossing(last));
    first = last + 1;
  }
  partition.price = CostOfSchedule(problem_.shape, partition.costs);
  return partition;
}

StageUnits::Table StageUnits::LeastOf(
    const StageValue& value, const std::function<double(double own, double rest)>& join) const {
  constexpr double kImpossible = std::numeric_limits<double>::infinity();
  Table least(stages(), std::vector<double>(size(), kImpossible));
  for (int u = 0; u < size(); ++u) least.back()[u] = value(stages() - 1, u, size() - 1);
  for (int s = stages() - 2; s >= 0; --s) {
    for (int first = s; first <= LatestLast(s); ++first) {
      for (int last = first; last <= LatestLast(s); ++last) {
        const double rest = least[s + 1][last + 1];
        if (rest == kImpossible) continue;
        least[s][first] = std::min(least[s][first], join(value(s, first, last), rest));
      }
    }
  }
  return least;
}

StageUnits::Table StageUnits::LeastMaximum(const StageValue& value) const {
  return LeastOf(value, [](double own, double rest) { return std::max(own, rest); });
}

std::vector<int> StageUnits::CutsOf(const Table& least_maximum, const StageValue& value) const {
  std::vector<int> cuts;
  int first = 0;
  for (int s = 0; s + 1 < stages(); ++s) {
    int last = LatestLast(s);
    while (std::max(value(s, first, last), least_maximum[s + 1][last + 1]) > least_maximum[0][0]) {
      --last;
      RT_CHECK(last >= first, "the table has a cut for its least maximum");
    }
    cuts.push_back(last);
    first = last + 1;
  }
  cuts.push_back(size() - 1);
  return cuts;
}

}  // namespace ringtail
