// Images for steps that are measured: a run's own, loaded by input threads beside the steps if those
// share the cores that compute, since they take caches from them, too; else random ones in memory.
// And the time of computing beside such threads.
// Thread-safety: the trainer thread. Cost: as much processor time as a run needs for its first images.
#ifndef RINGTAIL_APPS_PLAN_STEP_IMAGES_H_
#define RINGTAIL_APPS_PLAN_STEP_IMAGES_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "apps/config/run_config.h"
#include "apps/random_batch.h"
#include "apps/trainer/training_data.h"
#include "core/machine/core_counters.h"
#include "core/status.h"
#include "core/stopwatch.h"
#include "data/loader.h"
#include "layers/net/net.h"

namespace ringtail {

// Whether all cores of this rank compute, one of `ranks_here` on this host: input threads then take
// time from those that do.
bool InputSharesCores(int ranks_here);

struct StepImagesOptions {
  int64_t batch = 1;                   // images
  int64_t image_size = 1;              // pixels
  const TrainingData* data = nullptr;  // null: random images
  int ranks_here = 1;
};

class StepImages {
 public:
  // Random images also if there are fewer than a batch to train on. InvalidArgument if images have more
  // classes than the model.
  static StatusOr<std::unique_ptr<StepImages>> Create(const Model& model, const RunConfig& config,
                                                      const StepImagesOptions& options);

  // Valid until the next call. Waits for images; errors are those of DataLoader::Next.
  StatusOr<BatchView> Next();

 private:
  std::optional<RandomBatch> random_;
  std::unique_ptr<DataLoader> loader_;  // or this one
};

// A stopwatch of computing: leaves out what input threads have taken from `cores` meanwhile, so that
// a plan can count it by image.
class ComputeWatch {
 public:
  explicit ComputeWatch(double cores);
  void Start();  // looks for input threads: they come and go
  double Seconds() const {
    return watch_.Seconds();
  }                  // by the clock, since Start or the last Restart
  double Restart();  // seconds of computing since then

 private:
  const double cores_;
  NamedThreads input_;
  Stopwatch watch_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_STEP_IMAGES_H_
