// TestAffine: a ChannelAffine for a blob, and what it makes of the blob when it is written.
#ifndef RINGTAIL_TESTS_LAYERS_TEST_AFFINE_H_
#define RINGTAIL_TESTS_LAYERS_TEST_AFFINE_H_

#include <algorithm>
#include <vector>

#include "layers/element_types/blob_elements.h"
#include "layers/kernels/batch_norm.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {

class TestAffine {
 public:
  // Random; maps 0 to something else, except in padding channels. Clamps to [low, high].
  explicit TestAffine(const BlobDesc& desc, float low = 0, float high = 1.5F)
      : mean_(Values(desc, 11, -0.5F, 0.5F)),
        scale_(Values(desc, 12, 0.5F, 2)),
        bias_(Values(desc, 13, 0.5F, 1)),
        low_(low),
        high_(high) {}

  ChannelAffine affine() const { return {mean_.data(), scale_.data(), bias_.data(), low_, high_}; }

  // As batch norm would write it, in place.
  void Apply(const BlobDesc& desc, float* blob) const {
    ForElementOf(desc.type, [&](auto element) { ApplyTo<decltype(element)>(desc, blob); });
  }

 private:
  template <typename Element>
  void ApplyTo(const BlobDesc& desc, float* blob) const {
    for (int64_t i = 0; i < desc.N * desc.channel_blocks(); ++i) {
      Element* plane = ElementsOf<Element>(blob) + i * desc.plane() * desc.block;
      RT_KERNEL(BatchNormApply<Element>, plane, desc.plane(), desc.block,
                affine().From(i % desc.channel_blocks() * desc.block), plane);
    }
  }
  static std::vector<float> Values(const BlobDesc& desc, uint64_t seed, float low, float high) {
    const int64_t channels = desc.channel_blocks() * desc.block;
    std::vector<float> values = RandomPlain({1, channels}, seed, low, high);
    std::fill(values.begin() + desc.C, values.end(), 0.0F);
    return values;
  }

  std::vector<float> mean_, scale_, bias_;
  float low_, high_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_TEST_AFFINE_H_
