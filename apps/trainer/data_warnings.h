// What is unusual about the images of a run, and costs accuracy unless something is done: said
// before the first step.
// Thread-safety: a pure function.
#ifndef RINGTAIL_APPS_TRAINER_DATA_WARNINGS_H_
#define RINGTAIL_APPS_TRAINER_DATA_WARNINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/run.pb.h"
#include "apps/trainer/training_data.h"

namespace ringtail {

// An epoch of so few steps or fewer is worth a warning.
inline constexpr int64_t kVeryFewSteps = 2;
// Class counts that are further apart are.
inline constexpr int64_t kUnbalanced = 10;

// One sentence each: all images are of one class; class folders are empty; classes have no image to
// train on; an epoch has one or two steps of `global_batch` images; counts of classes are far
// apart, and data.class_balance is 0.
std::vector<std::string> DataWarnings(const TrainingData& data, const RunConfig& config,
                                      int64_t global_batch);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_DATA_WARNINGS_H_
