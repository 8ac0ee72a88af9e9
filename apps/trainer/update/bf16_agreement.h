// Whether the optimizers of all ranks take products of bf16 (OptimizerOptions, optim/optimizer.h).
//
// An update has the same bits on all ranks, and servers and their copies make the same update: so
// either all take them or none does. The instruction set does not tell, as not every processor with
// AVX-512 has these products, and they are slow on some that have them (core/fast_bf16_products.h).
// Ranks that take steps of their own (dist.local) each do what is fast there.
// Thread-safety: the trainer thread. Errors: those of the world.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_BF16_AGREEMENT_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_BF16_AGREEMENT_H_

#include "apps/run.pb.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"

namespace ringtail {

// All ranks, before the optimizer is made; `fast_here`: FastBf16Products(). Rank 0 says if ranks
// with fast ones have to do without.
StatusOr<bool> AgreeOnBf16Products(bool fast_here, const RunConfig& config, TrainingWorld* world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_BF16_AGREEMENT_H_
