// A batch of random images and labels, for measurements.
#ifndef RINGTAIL_APPS_RANDOM_BATCH_H_
#define RINGTAIL_APPS_RANDOM_BATCH_H_

#include <cstdint>
#include <vector>

#include "core/aligned_buffer.h"
#include "layers/net/net.h"

namespace ringtail {

class RandomBatch {
 public:
  // Square images for `model`, with pixels in the range of normalised images.
  RandomBatch(const Model& model, int64_t batch, int64_t image_size);

  // Refers to this object, which must outlive the view.
  BatchView view() const { return {images_.floats().data(), labels_}; }

 private:
  AlignedBuffer images_;
  std::vector<int32_t> labels_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_RANDOM_BATCH_H_
