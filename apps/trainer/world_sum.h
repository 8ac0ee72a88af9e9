// WorldSum: lets the layers of a net add up numbers over the ranks of a world (batch norm over the
// batch of all ranks: dist.sync_batch_norm). If the world ends meanwhile, the pass continues with
// the numbers of this rank, and its result is thrown away: waiting for the gradients returns the
// error.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_WORLD_SUM_H_
#define RINGTAIL_APPS_TRAINER_WORLD_SUM_H_

#include <span>

#include "apps/trainer/training_world.h"
#include "layers/layer.h"

namespace ringtail {

class WorldSum : public RankSum {
 public:
  explicit WorldSum(TrainingWorld* world) : world_(world) {}
  void Sum(std::span<double> numbers) override {
    if (!world_->lost()) (void)world_->Sum(numbers);
  }

 private:
  TrainingWorld* const world_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_WORLD_SUM_H_
