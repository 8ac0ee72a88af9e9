#include "apps/random_batch.h"

#include "core/random.h"

namespace ringtail {

RandomBatch::RandomBatch(const Model& model, int64_t batch, int64_t image_size)
    : images_(batch * model.input_channels() * image_size * image_size * sizeof(float)),
      labels_(batch) {
  Rng rng(RngKey(1).With(kTestStream));
  for (float& pixel : images_.floats()) pixel = rng.Uniform(-2, 2);
  for (int32_t& label : labels_) label = static_cast<int32_t>(rng.Below(model.num_classes()));
}

}  // namespace ringtail
