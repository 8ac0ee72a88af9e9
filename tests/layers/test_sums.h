// ExpectedGradientSums: the BlobGradientSums of a gradient by their definition, in double.
#ifndef RINGTAIL_TESTS_LAYERS_TEST_SUMS_H_
#define RINGTAIL_TESTS_LAYERS_TEST_SUMS_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "layers/kernels/affine.h"
#include "layers/moments.h"

namespace ringtail {

class ExpectedGradientSums {
 public:
  // From plain blobs: batch norm's src and the gradient of its dst; its map, and the parts.
  ExpectedGradientSums(const BlobDesc& d, const std::vector<float>& src,
                       const std::vector<float>& diff_dst, const ChannelAffine& affine,
                       const BlobParts& parts)
      : parts_(parts), g_(parts.elements(d)), gx_(g_), reach_(g_) {
    for (int64_t i = 0; i < d.N * d.C * d.plane(); ++i) {
      const int64_t pixel = i % d.plane(), c = i / d.plane() % d.C, n = i / d.plane() / d.C;
      const int64_t at = parts.At(d, n, pixel / parts.part_pixels, c / d.block) + c % d.block;
      const float centred = src[i] - affine.mean[c];
      const float y = std::fma(centred, affine.scale[c], affine.bias[c]);
      const double product = static_cast<double>(diff_dst[i]) * centred;
      reach_[at] += std::abs(diff_dst[i]) + std::abs(product);
      if (!(y > affine.low && y < affine.high)) continue;
      g_[at] += diff_dst[i];
      gx_[at] += product;
    }
  }

  BlobGradientSums sums() { return {parts_, g_.data(), gx_.data()}; }

  // As near as sums in float are; 0 in padding channels.
  void ExpectNear(const std::vector<double>& g, const std::vector<double>& gx) const {
    ASSERT_EQ(g.size(), g_.size());
    ASSERT_EQ(gx.size(), gx_.size());
    for (size_t i = 0; i < g.size(); ++i) {
      ASSERT_NEAR(g[i], g_[i], 1e-5 * reach_[i]) << i;
      ASSERT_NEAR(gx[i], gx_[i], 1e-5 * reach_[i]) << i;
    }
  }

 private:
  const BlobParts parts_;
  std::vector<double> g_, gx_, reach_;  // reach: sums of absolute values
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_TEST_SUMS_H_
