// A training world whose ranks are threads of this process, for tests of what ranks do together.
//
//   OnTrainingRanks(3, [](TrainingWorld* world) { ... });      each rank on a thread of its own
//
// Returns once all ranks have. A world that cannot be made fails the test.
// Thread-safety: `body` is called by all ranks at the same time.
#ifndef RINGTAIL_TESTS_APPS_TRAINER_THREAD_WORLD_H_
#define RINGTAIL_TESTS_APPS_TRAINER_THREAD_WORLD_H_

#include <functional>

#include "apps/trainer/training_world.h"

namespace ringtail {

// Each rank on a host of its own; `network`: as if it had been measured.
void OnTrainingRanks(int size, const std::function<void(TrainingWorld*)>& body,
                     const NetworkModel& network = {});

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_TRAINER_THREAD_WORLD_H_
