// Adapts a recipe to a large batch: the config states the batch that its learning rate was found
// with; the rate, the warm-up, the average over time and the warnings follow from the run's batch.
//
//   k = global batch / reference batch
//                        one step of a batch k times larger replaces k small steps, so ...
//   LINEAR       lr k         ... it goes as far as they do, as the gradient hardly changes between
//                             them (Goyal et al. 2017, section 2.1)
//   SQUARE_ROOT  lr sqrt(k)   ... its noise is as large as theirs (Krizhevsky 2014, section 3.2;
//                             Hoffer et al. 2017)
//
//   rate  lr k |        ________      The gradient does change in the first epochs, so the warm-up
//              |      /               begins with the rate of the small batch and ends with that of
//          lr  |_____/                the large one (Goyal et al. 2017, section 2.2).
//              0    warm-up
//
// A rate is also for a length of run: the steps of a longer one have longer to add up, and a rate that
// is high for them costs more than it gains; those of a shorter one must lead as far. With a stated
// reference_images a run that sees k times as many images takes lr / sqrt(k), as the bounds of
// stochastic descent have it (Nemirovski et al. 2009, section 2.2), and at most twice lr; one that
// begins with trained weights at most lr. By images, not steps, so that it does not depend on the batch.
// A run that is made longer or shorter when it is resumed (begun_epochs) keeps its rate.
//
// An average over time (ema_decay) keeps spanning as many images: decay^k (Busbridge et al. 2023, "How
// to Scale Your EMA", definition 1.2).
//
// Ringtail's rules keep the rate outside the velocity, so that a change of the rate needs no
// momentum correction: tests/optim/momentum_correction_test.cc.
// Thread-safety: pure functions.
#ifndef RINGTAIL_OPTIM_BATCH_SCALING_H_
#define RINGTAIL_OPTIM_BATCH_SCALING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config_source.h"
#include "core/status.h"
#include "optim/optim.pb.h"

namespace ringtail {

// With fewer steps in an epoch, recipes measured in epochs stop working.
inline constexpr int64_t kFewStepsPerEpoch = 10;

struct BatchSizes {
  int64_t rank = 0;             // train.batch: the reference, unless the config states another
  int64_t global = 0;           // of an update: over all ranks
  int64_t step = 0;             // over all ranks, where an update is of fewer; 0: `global`
  int64_t steps_per_epoch = 0;  // with the global batch
  double epochs = 0;            // of the run; 0: unknown
  bool has_weights = false;     // begins with trained ones: a short run has no long way to go
};

struct ScaledOptim {
  OptimConfig config;   // for the run: learning_rate, warmup and ema_decay are those of its batch
  std::string summary;  // the change and its reason, for people; empty without a change
  std::vector<std::string> warnings;
};

// InvalidArgument for values out of range; `source` (may be null) points at them.
Status ValidateBatchScaling(const OptimConfig& config, const ConfigSource* source);

// Whether the rate depends on the number of images that the run sees.
bool RateFollowsLength(const OptimConfig& config);

// Requires a valid config and positive sizes.
ScaledOptim ScaleToBatch(const OptimConfig& config, const BatchSizes& sizes);

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_BATCH_SCALING_H_
