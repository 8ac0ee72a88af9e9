// Nets of several ranks, set up so that all use the same convolution algorithms.
//
//   rank   machine   kind
//   0      A         43      measures, tells all
//   1      A         43                           sets up with what it was told
//   2      B         21           measures, tells all
//   3      B         21                           sets up with what it was told
//
// Of the ranks with the same machine and kind the first one measures, while all others rest:
// measured at the same time, one shape could get different algorithms on different ranks and in
// every run. In the end every rank knows the algorithms of all that have its instruction set, so that
// rank 0 can write them into checkpoints; ranks with another one measure again after a resume.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_SET_UP_IN_TURN_H_
#define RINGTAIL_APPS_TRAINER_SET_UP_IN_TURN_H_

#include <functional>
#include <string>

#include "apps/trainer/training_world.h"
#include "core/status.h"

namespace ringtail {

// All ranks. `set_up` creates nets, the same ones on ranks of a kind: "batch 43"; it is called once on
// each rank.
Status SetUpInTurn(TrainingWorld* world, const std::string& kind,
                   const std::function<Status()>& set_up);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_SET_UP_IN_TURN_H_
