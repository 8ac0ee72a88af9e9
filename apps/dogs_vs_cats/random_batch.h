// A batch of random images and labels, to measure how long something takes with one.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_RANDOM_BATCH_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_RANDOM_BATCH_H_

#include <cstdint>
#include <vector>

#include "core/aligned_buffer.h"
#include "layers/net/net.h"

namespace ringtail {

class RandomBatch {
 public:
  // Of square images that `model` takes; pixels in the range of normalised ones.
  RandomBatch(const Model& model, int64_t batch, int64_t image_size);

  // Of this object, which must outlive it.
  BatchView view() const { return {images_.floats().data(), labels_}; }

 private:
  AlignedBuffer images_;
  std::vector<int32_t> labels_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_RANDOM_BATCH_H_
