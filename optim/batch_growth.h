// Growing the batch in place of lowering the learning rate (Smith, Kindermans, Ying & Le 2018,
// arXiv 1711.00489): the same curve over the epochs in fewer steps, which are larger and so worth
// more ranks.
//
//   noise of SGD's steps   g ~ rate N / (batch (1 - momentum))        N: training images
//
// A schedule lowers g by its rate; a batch f times larger lowers it as much. What a step takes is
// counted in batches of the size that the run begins with. With f, how many times lower the
// schedule's rate is than its peak (RateReduction of schedule.h; a warm-up is no part of it):
//
//   batches of a step   k = floor(f), at most most_batches
//   rate of a step      k times the schedule's: rate / batch, and with it g, is the schedule's at
//                       every step, whatever f and however k rounds it
//
//   rate   0.1 |____                                   rate   0.1 |____ ____ ____
//              |    |____                 becomes                 |    |    |    |____   0.02
//              |         |____                                    |    |    |    |
//              |              |____                     batches   | 1  | 5  | 25 | 25    of a step
//              0   60  120  160  epoch                            0   60  120  160       at most 25
//
// Factors that are whole, as drawn, are the paper's. Where the rate falls smoothly (cosine,
// polynomial, one cycle), the batch grows by one whenever f reaches the next whole number, and in
// between the rate stays above k / (k + 1) of its peak. A stage begins with the first step that
// starts at its mark or behind it. Batches are drawn as if none grew; a step may take some of this
// epoch and some of the next, so that no batch is smaller than the others.
// Tried by the paper with SGD, momentum, Nesterov and Adam; LARS, LAMB and Muon, which divide by
// norms that noise is part of, have no such rule of their own.
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

// Steps that take equally many batches, until the next stage begins.
struct GrowthStage {
  int64_t first_step = 0;   // of the run
  int64_t first_batch = 0;  // of the run: batches that all steps before have taken
  int64_t batches = 1;      // of each step
};

// What growth depends on beside the config. A batch: of the size that the run begins with.
struct GrowthRun {
  int64_t images_per_batch = 0;  // over all ranks
  int64_t batches_per_epoch = 0;
  int64_t total_batches = 0;
  int64_t most_batches = 1;  // that a step may take
};

// InvalidArgument for values out of range, and if the schedule's rate never falls.
Status ValidateBatchGrowth(const OptimConfig& config, const ConfigSource* source);

// How many batches a step may take; 1 without batch_growth. InvalidArgument if max_batch is smaller
// than the batch that the run begins with, or larger than all `images` to train on.
StatusOr<int64_t> MostBatches(const OptimConfig& config, int64_t images_per_batch, int64_t images);

// The stages of a run: at least one, the first with one batch. What comes before a step does not
// depend on what comes after it. `config`: as batch scaling has made it.
std::vector<GrowthStage> GrowthStages(const OptimConfig& config, const GrowthRun& run);

// The rate of a step that begins after `first_batch` batches and takes `batches`.
double GrownRate(const OptimConfig& config, const GrowthRun& run, int64_t first_batch,
                 int64_t batches);

// "epoch 60: batch 128 -> 640 in place of rate 0.1 -> 0.02 (batch_growth)". `stage` >= 1.
std::string DescribeStage(const OptimConfig& config, const GrowthRun& run,
                          std::span<const GrowthStage> stages, size_t stage);

// What growth makes of the whole run: "batch 128 -> 640 -> 3200 in place of lower rates, from epoch
// 60 on: 29328 steps instead of 78000 (batch_growth)"; or a warning of why it never grows.
struct GrowthReport {
  std::string summary;  // empty: nothing grows
  std::vector<std::string> warnings;
};
GrowthReport ReportGrowth(const OptimConfig& config, const GrowthRun& run,
                          std::span<const GrowthStage> stages, int64_t total_steps);

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_BATCH_GROWTH_H_
