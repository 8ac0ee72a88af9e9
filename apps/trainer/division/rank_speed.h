// Measures how fast this rank computes while all others compute, too.
//
//   rank 0   [set up][warm up] | [ pass ][ pass ][ pass ][ pass ][ pass ][ pass ]
//   rank 1   [set up][warm up] | [    pass    ][    pass    ][    pass    ]
//                            barrier                                     all have enough
//
// A pass is forward and backward of a batch of random images of the size that training begins
// with, in a separate network: weights, running statistics and the order of images are not
// touched. Ranks of a host share its memory and its power, so each continues until the slowest has
// enough passes; otherwise the slowest would be measured on an idle host.
// Batch norm takes each rank's own statistics, or all ranks would be as fast as the slowest.
// Thread-safety: the trainer thread, between steps. Errors: those of net and world.
#ifndef RINGTAIL_APPS_TRAINER_DIVISION_RANK_SPEED_H_
#define RINGTAIL_APPS_TRAINER_DIVISION_RANK_SPEED_H_

#include "apps/config/run_config.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"

namespace ringtail {

// Images per second of this rank. All ranks of a world of several; `batch`, a multiple of
// train.accumulation, is the same on all.
// Cost: four passes, or a little over three seconds; and the measurement of convolutions for this
// batch, which is remembered.
StatusOr<double> MeasureRankSpeed(const LoadedConfig& loaded, int64_t batch, TrainingWorld* world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_DIVISION_RANK_SPEED_H_
