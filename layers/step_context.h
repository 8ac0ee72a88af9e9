// StepContext: what all layers of one pass share.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_LAYERS_STEP_CONTEXT_H_
#define RINGTAIL_LAYERS_STEP_CONTEXT_H_

#include <array>
#include <cstdint>
#include <span>

namespace ringtail {

// Sums numbers over the ranks that compute one batch together, in place: every rank ends with the
// same sums. Blocks; all ranks make the same calls, with as many numbers. After a failure the
// numbers are unspecified; the implementer records the error, and the caller discards the step.
class RankSum {
 public:
  virtual ~RankSum() = default;
  virtual void Sum(std::span<double> numbers) = 0;
};

// What rows are to be, where that is more than one class, or where some count more than others
// (layers/softmax_cross_entropy.h). Empty: every row is its label, with weight 1.
struct SoftTargets {
  std::span<const int32_t> other_labels;          // N; a second class of the row; -1: none
  std::span<const std::array<float, 2>> weights;  // N; of label and other label; finite, >= 0

  bool empty() const { return other_labels.empty(); }
  SoftTargets Rows(int64_t first, int64_t count) const {
    if (empty()) return {};
    return {other_labels.subspan(first, count), weights.subspan(first, count)};
  }
};

class ShardExchange;   // layers/linear/shard_exchange.h
struct StageBoundary;  // layers/pipeline/stage.h

struct StepContext {
  bool training = true;      // batch statistics, dropout on
  uint64_t seed = 0;         // the run's
  uint64_t step = 0;         // optimizer step; dropout is a function of (seed, step, layer, sample)
  int64_t first_sample = 0;  // position of row 0 in the global batch
  std::span<const int32_t> labels;  // N class indices; -1: no sample in this row
  SoftTargets soft;                 // of the same rows
  RankSum* ranks = nullptr;  // batch norm normalizes over the batch of all ranks; null: its own
  // Batch norm's running statistics take the batch in as if this many steps had the same.
  int64_t statistics_steps = 1;
  // Of nets with sharded layers (layers/net/model.h): all ranks run the same passes. Else null.
  ShardExchange* shards = nullptr;
  // Of nets of a stage: where what crosses lies. What it names may change between forward and backward.
  const StageBoundary* boundary = nullptr;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_STEP_CONTEXT_H_
