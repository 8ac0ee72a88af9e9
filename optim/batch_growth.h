// Grows the batch in place of lowering the learning rate (Smith, Kindermans, Ying & Le 2018,
// arXiv 1711.00489): the same curve over the epochs in fewer and larger steps, which can use more
// ranks.
//
//   noise of SGD's steps   g ~ rate N / (batch (1 - momentum))        N: training images
//
// A schedule lowers g through the rate; a batch f times larger lowers it as much. Steps are
// measured in batches of the run's first size. Let f be the factor by which the schedule's rate is
// below its peak (RateReduction of schedule.h; the warm-up does not count):
//
//   batches of a step   k = floor(f), at most most_batches
//   rate of a step      k times the schedule's: rate / batch, and with it g, equals the schedule's
//                       at every step, for any f and its rounding k
//
//   rate   0.1 |____                                   rate   0.1 |____ ____ ____
//              |    |____                 becomes                 |    |    |    |____   0.02
//              |         |____                                    |    |    |    |
//              |              |____                     batches   | 1  | 5  | 25 | 25    of a step
//              0   60  120  160  epoch                            0   60  120  160       at most 25
//
// Whole factors, as drawn, are the paper's. Where the rate falls smoothly (cosine,
// polynomial, one cycle), the batch grows by one whenever f reaches the next whole number, and in
// between the rate stays above k / (k + 1) of its peak. A stage begins with the first step that
// starts at or after its mark. Batches are drawn as without growth; a step may take some batches of
// this epoch and some of the next, so that all batches have the same size.
// The paper tested SGD, momentum, Nesterov and Adam; there is no published rule for LARS, LAMB and
// Muon, which divide by norms that include noise.
// Thread-safety: pure functions. Cost: some hundred rates per stage.
#ifndef RINGTAIL_OPTIM_BATCH_GROWTH_H_
#define RINGTAIL_OPTIM_BATCH_GROWTH_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config/config_source.h"
#include "core/status.h"
#include "optim/optim.pb.h"

namespace ringtail {

// Consecutive steps with the same number of batches.
struct GrowthStage {
  int64_t first_step = 0;   // of the run
  int64_t first_batch = 0;  // of the run: batches of all earlier steps
  int64_t batches = 1;      // of each step
};

// What growth depends on beside the config. Batches have the run's first size.
struct GrowthRun {
  int64_t images_per_batch = 0;  // over all ranks
  int64_t batches_per_epoch = 0;
  int64_t total_batches = 0;
  int64_t most_batches = 1;  // of a step
};

// InvalidArgument for values out of range, and if the schedule's rate never falls.
Status ValidateBatchGrowth(const OptimConfig& config, const ConfigSource* source);

// The most batches of a step; 1 without batch_growth. InvalidArgument if max_batch is smaller than
// the run's first batch, or larger than the number of training `images`.
StatusOr<int64_t> MostBatches(const OptimConfig& config, int64_t images_per_batch, int64_t images);

// The stages of a run: at least one, the first with one batch. Stages before a step do not depend
// on later ones. `config`: after batch scaling.
std::vector<GrowthStage> GrowthStages(const OptimConfig& config, const GrowthRun& run);

// The rate of a step that begins after `first_batch` batches and takes `batches`.
double GrownRate(const OptimConfig& config, const GrowthRun& run, int64_t first_batch,
                 int64_t batches);

// "epoch 60: batch 128 -> 640 in place of rate 0.1 -> 0.02 (batch_growth)". `stage` >= 1.
std::string DescribeStage(const OptimConfig& config, const GrowthRun& run,
                          std::span<const GrowthStage> stages, size_t stage);

// The effect on the whole run: "batch 128 -> 640 -> 3200 in place of lower rates, from epoch 60 on:
// 29328 steps instead of 78000 (batch_growth)"; or a warning that explains why it never grows.
struct GrowthReport {
  std::string summary;  // empty if nothing grows
  std::vector<std::string> warnings;
};
GrowthReport ReportGrowth(const OptimConfig& config, const GrowthRun& run,
                          std::span<const GrowthStage> stages, int64_t total_steps);

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_BATCH_GROWTH_H_
