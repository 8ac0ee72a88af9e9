// Whether all ranks have the same files behind the names of their images: cats and dogs that were
// swapped on one of them, or another edition of the data, teach it something else without a word.
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
// Files of equal size count as equal: to read all of them on every rank would cost as much as an
// epoch. Cost: a stat per file and 16 bytes per rank; 4 KiB per rank more where there is an error.
// Thread-safety: the trainer thread of every rank, together.
Status AgreeOnFiles(const Dataset& dataset, const std::vector<int64_t>& used, int workers,
                    TrainingWorld* world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_SAME_FILES_H_
