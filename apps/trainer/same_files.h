// Checks that all ranks have the same files behind the names of their images. A rank on which cats
// and dogs were swapped, or that has another edition of the data, would silently learn something
// else.
#ifndef RINGTAIL_APPS_TRAINER_SAME_FILES_H_
#define RINGTAIL_APPS_TRAINER_SAME_FILES_H_

#include <cstdint>
#include <vector>

#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "data/dataset.h"

namespace ringtail {

// InvalidArgument that names the first image whose file has another size on another rank, and both
// sizes. Every rank has the same list `used`. `workers`: as data.workers, 0 for one per core.
// Files of equal size count as equal: reading all of them on every rank would cost as much as an
// epoch. Cost: a stat per file and 16 bytes per rank; 4 KiB per rank more where there is an error.
// All ranks. Thread-safety: the trainer thread.
Status AgreeOnFiles(const Dataset& dataset, const std::vector<int64_t>& used, int workers,
                    TrainingWorld* world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_SAME_FILES_H_
