// TestGradient: a ChannelGradient for a blob of gradients, and what it makes of them when it is
// written.
#ifndef RINGTAIL_TESTS_LAYERS_TEST_GRADIENT_H_
#define RINGTAIL_TESTS_LAYERS_TEST_GRADIENT_H_

#include <algorithm>
#include <vector>

#include "layers/kernels/batch_norm.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/test_affine.h"

namespace ringtail {

class TestGradient {
 public:
  // Random; padding channels map 0 to 0. [low, high]: the clamp of the map.
  explicit TestGradient(const BlobDesc& desc, float low = 0, float high = 1.5F)
      : desc_(desc),
        affine_(desc, low, high),
        src_(desc.bytes()),
        slope_(Values(desc, 21)),
        offset_(Values(desc, 22)) {
    CopyToLayout(RandomPlain(desc, 23, -2, 6), desc, src_.floats());
  }

  ChannelGradient gradient() const {
    return {src_.floats(), affine_.affine(), slope_.data(), offset_.data()};
  }

  // As batch norm would write it, in place.
  void Apply(float* blob) const {
    for (int64_t i = 0; i < desc_.N * desc_.channel_blocks(); ++i) {
      const int64_t plane = i * desc_.plane() * desc_.block;
      const ChannelGradient map = gradient().From(i % desc_.channel_blocks() * desc_.block);
      RT_KERNEL(BatchNormGradient<float>, map.src + plane, blob + plane, desc_.plane(), desc_.block,
                map.affine, map.slope, map.offset, blob + plane);
    }
  }

 private:
  static std::vector<float> Values(const BlobDesc& desc, uint64_t seed) {
    std::vector<float> values = RandomPlain({1, desc.channel_blocks() * desc.block}, seed);
    std::fill(values.begin() + desc.C, values.end(), 0.0F);
    return values;
  }

  BlobDesc desc_;
  TestAffine affine_;
  GuardedBuffer src_;
  std::vector<float> slope_, offset_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_TEST_GRADIENT_H_
