// SharedNet: the one network on which all virtual workers compute, one after the other.
//
//   worker's weights in the model's arena -> Compute(step, rows) -> gradients in the model's arena
//
// The gradients are those that a rank with these rows of the global batch computes: the same
// images, dropout and batch norm over its own rows. A net is kept for each number of rows.
// Thread-safety: the trainer thread. Errors: those of the loader; InvalidArgument if rows cannot be
// cut out of a batch; ResourceExhausted if a net does not fit into memory.
#ifndef RINGTAIL_APPS_EMULATOR_SHARED_NET_H_
#define RINGTAIL_APPS_EMULATOR_SHARED_NET_H_

#include <cstdint>
#include <map>
#include <memory>

#include "apps/config/run_config.h"
#include "apps/emulator/batch_source.h"
#include "apps/trainer/training_data.h"
#include "apps/trainer/training_plan.h"
#include "apps/trainer/update/gradient_pass.h"
#include "core/status.h"

namespace ringtail {

class SharedNet {
 public:
  // All pointers must outlive it.
  SharedNet(const RunConfig* config, const TrainingData* data, const TrainingPlan* plan,
            Model* model)
      : config_(config), data_(data), plan_(plan), model_(model) {}

  // Sums over these rows of each of the step's batches. `listener` may be null; `statistics_steps`: see
  // StepContext.
  StatusOr<LossResult> Compute(int64_t step, ElementRange rows, GradientListener* listener,
                               int64_t statistics_steps = 1);
  // No step will be asked for before `step`.
  void Forget(int64_t step);
  // Makes the net for the first step ready, whose layers it returns (valid until Forget).
  StatusOr<std::span<const LayerInfo>> Layers(int64_t rows);

  PassTimes times() const { return times_; }  // real time, of all steps so far

 private:
  struct PhaseNet {  // of one image size
    std::unique_ptr<BatchSource> batches;
    std::map<int64_t, std::unique_ptr<GradientPass>> passes;  // by rows
    int64_t last_step = 0;                                    // that anybody asked for
  };

  StatusOr<PhaseNet*> PhaseOf(int64_t image_size);
  StatusOr<GradientPass*> PassOf(PhaseNet* phase, int64_t image_size, int64_t rows);

  const RunConfig* const config_;
  const TrainingData* const data_;
  const TrainingPlan* const plan_;
  Model* const model_;
  std::map<int64_t, PhaseNet> phases_;  // by image size
  PassTimes times_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_SHARED_NET_H_
