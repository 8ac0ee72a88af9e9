// A loader's batch as a net takes it: data/ and layers/ do not know each other.
// Thread-safety: a pure function.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_BATCH_VIEW_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_BATCH_VIEW_H_

#include "data/loader.h"
#include "layers/net/net.h"

namespace ringtail {

// Valid as long as the batch.
inline BatchView ViewOf(const LoadedBatch& batch) {
  return {.images = batch.images,
          .labels = batch.labels,
          .soft = {.other_labels = batch.other_labels, .weights = batch.label_weights}};
}

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_BATCH_VIEW_H_
