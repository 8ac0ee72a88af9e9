// The layers of a pipeline as units that no cut parts, with prefix sums: what a stage of units costs
// in O(1). For dist/pipeline/partition.cc; terms are those of partition.h.
// Thread-safety: immutable.
#ifndef RINGTAIL_DIST_PIPELINE_STAGE_UNITS_H_
#define RINGTAIL_DIST_PIPELINE_STAGE_UNITS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "dist/pipeline/partition.h"

namespace ringtail {

class StageUnits {
 public:
  explicit StageUnits(const PartitionProblem& problem);

  int size() const { return static_cast<int>(last_layers_.size()); }
  int stages() const { return problem_.shape.stages; }
  int FirstLayer(int unit) const { return unit == 0 ? 0 : last_layers_[unit - 1] + 1; }
  int LastLayer(int unit) const { return last_layers_[unit]; }

  // Of the units first .. last.
  StageCost CostOf(int first, int last) const;
  double ComputeSeconds(int first, int last) const;  // forward and backward
  // One micro-batch through the busier of the two ports of the stage.
  double PortSeconds(int first, int last) const;
  // One micro-batch from the stage that ends with this unit to the next, and its gradient back.
  double RoundTripSeconds(int unit) const;
  int64_t CrossingBytes(int unit) const;  // the same in bytes, both ways
  int64_t MemoryBytes(int stage, int first, int last) const;
  bool Fits(int stage, int first, int last) const;  // into the memory limit

  // The partition into stages with these last units; the last is the last unit.
  PipelinePartition Price(const std::vector<int>& last_units) const;

  // The last unit of a stage at most: every later stage needs one.
  int LatestLast(int stage) const { return size() - stages() + stage; }

  // By stage and first unit: the least possible value of the stages from there on, all units until
  // the last; `join` says how a stage's own value and the rest become one. Infinite: impossible.
  using StageValue = std::function<double(int stage, int first, int last)>;
  using Table = std::vector<std::vector<double>>;
  Table LeastOf(const StageValue& value,
                const std::function<double(double own, double rest)>& join) const;
  Table LeastMaximum(const StageValue& value) const;
  // Last units of stages whose maximum is that of the table; it must be finite.
  std::vector<int> CutsOf(const Table& least_maximum, const StageValue& value) const;

 private:
  const BoundaryCost& Crossing(int unit) const {
    return problem_.layers[last_layers_[unit]].crossing;
  }

  const PartitionProblem& problem_;
  std::vector<int> last_layers_;                   // by unit
  std::vector<double> forward_s_, backward_s_;     // of the units before
  std::vector<int64_t> fixed_bytes_, kept_bytes_;  // of the units before
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PIPELINE_STAGE_UNITS_H_
