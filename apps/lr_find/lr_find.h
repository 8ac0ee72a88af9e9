// A learning-rate range test: trains a network for some steps, each at a higher rate, and looks at the
// loss (rate_curve.h). With the config's network, start weights, frozen layers, batch, augmentation,
// optimizer and clipping; without its schedule, warm-up and averaging. The network is thrown away, and
// nothing is written.
// Thread-safety: the thread that computes.
#ifndef RINGTAIL_APPS_LR_FIND_LR_FIND_H_
#define RINGTAIL_APPS_LR_FIND_LR_FIND_H_

#include <functional>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/lr_find/rate_curve.h"
#include "apps/trainer/training_data.h"
#include "core/status.h"

namespace ringtail {

// From a rate at which hardly anything moves to one at which everything breaks, for the update rule:
// sgd 1e-4 to 10, adam and adamw 1e-6 to 1, lamb 1e-5 to 10; of muon and lars, whose step moves a
// tensor by rate * trust of its norm, 1e-5 to 2 divided by trust.
RateRange DefaultRange(const OptimConfig& config);

// A rate of a run, as the config has it: `rate` is for batches of train.batch images on one rank and
// train.epochs of so many images, optim.learning_rate for optim.batch_scaling's reference batch and
// number of images.
double AsConfigured(double rate, const RunConfig& config, int64_t training_images);

// The images that are there, split as a run does it, but not scanned: those that turn out to be bad
// are left out. Errors: those of Dataset::Open and SplitDataset.
StatusOr<TrainingData> OpenUnscanned(const DataConfig& config);

// Called after each step.
using RateListener = std::function<void(const RatePoint& point)>;

// Errors: those of the net and the loader (fewer images than a batch, too many bad ones); Cancelled
// once a signal asks to stop.
StatusOr<RateCurve> SweepRates(const LoadedConfig& loaded, const TrainingData& data,
                               const RateRange& range, const RateListener& listener = {});

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LR_FIND_LR_FIND_H_
