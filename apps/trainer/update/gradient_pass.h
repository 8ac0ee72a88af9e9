// GradientPass: the gradient of an optimizer step over one batch or several, each computed in one
// or several parts (gradient accumulation).
//
//   grads = sum over the samples of all batches of the step of d loss / d weights
//
// A batch is cut by rows into `parts` of equal size, each goes forward and backward alone, and
// the sums are accumulated: the memory of one part, the gradient of the whole. Dropout is keyed by
// the row's index in the batches of all ranks, so parts and ranks change nothing, except in batch
// norm, whose statistics are those of a part and, without `ranks`, of one rank. Rows with label -1
// do not count.
// State: the sums over the batches of a step so far; a second gradient block only if there are
// several parts or batches. Thread-safety: the trainer thread only.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_GRADIENT_PASS_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_GRADIENT_PASS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "apps/trainer/update/accumulated_gradients.h"
#include "core/status.h"
#include "layers/linear/shard_exchange.h"
#include "layers/net/net.h"

namespace ringtail {

// Is told while a step is computed what is final, so that it can be sent meanwhile.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  virtual void OnLoss(const LossResult& loss) = 0;  // of the whole step, before its last backward
  // The parameter's gradient over the whole step is final; once per parameter, in the arena's
  // order.
  virtual void OnReady(const Parameter& parameter) = 0;
};

struct PassTimes {
  double forward_seconds = 0, backward_seconds = 0;
};

// Which batch of which optimizer step.
struct StepBatch {
  int64_t step = 0;
  int64_t index = 0, count = 1;  // among the batches of this step, which are given in order
  // Added to options.first_sample: one pass computes the rows of several ranks (apps/emulator/).
  int64_t first_row = 0;
  int64_t statistics_steps = 1;  // see StepContext
};

class GradientPass {
 public:
  struct Options {
    int64_t batch = 64, parts = 1;  // parts divides batch
    int64_t most_batches = 1;       // of a step
    int64_t image_size = 128;
    uint64_t seed = 1;
    int64_t first_sample = 0;  // index of row 0 in the global batch
    int64_t global_batch = 0;  // rows of all ranks; 0: there is one rank
    RankSum* ranks = nullptr;  // batch norm takes the statistics of all ranks; null: of this one
    // Of a model whose layers ranks divide: all of them run the same passes. `shard` is its own.
    ShardExchange* shards = nullptr;
    LinearShard shard = {};
  };

  static StatusOr<std::unique_ptr<GradientPass>> Create(Model* model, const Options& options);

  // `batch` has options.batch rows; `listener` may be null. Returns the sums over the step so far;
  // they and the gradients are complete with its last batch.
  LossResult Run(const BatchView& batch, const StepBatch& place,
                 GradientListener* listener = nullptr);
  PassTimes times() const { return times_; }  // of the step so far

  // After a step with a loss or gradient that is not finite, for each of its batches, without the
  // other ranks: one sentence that says where it began; empty if it did not begin in these rows.
  // Running statistics are unchanged; gradients are overwritten.
  std::string DescribeNonFinite(const BatchView& batch, const StepBatch& place);

  const Options& options() const { return options_; }
  const Net& net() const { return *net_; }

 private:
  GradientPass(Model* model, const Options& options, std::unique_ptr<Net> net);
  BatchView Part(const BatchView& batch, int64_t part) const;

  Model* model_;
  Options options_;
  std::unique_ptr<Net> net_;
  AccumulatedGradients sum_;
  LossResult total_;  // of the step so far, as are the times
  PassTimes times_;
};

// What layers are told of part `part` of a batch of the step: where its rows stand in the global batch, and
// who takes part.
StepContext ContextOfPart(const GradientPass::Options& options, const StepBatch& place,
                          int64_t part);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_GRADIENT_PASS_H_
