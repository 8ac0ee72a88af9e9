#include "tests/layers/convolution/defined_convolution.h"

#include <cmath>

#include "tests/layers/layer_runner.h"

namespace ringtail {

DefinedConvolution::DefinedConvolution(const BlobDesc& src_desc, const BlobDesc& dst_desc,
                                       const Window& window)
    : src(RandomPlain({1, src_desc.elements()}, 1, -1, 2)),
      diff_dst(RandomPlain({1, dst_desc.elements()}, 2, -1, 1)),
      weight(RandomPlain({1, dst_desc.C * src_desc.C * kTaps}, 3, -1, 1)),
      bias(RandomPlain({1, dst_desc.C}, 4, -1, 1)),
      src_(src_desc),
      dst_(dst_desc),
      window_(window) {}

template <typename Fn>
void DefinedConvolution::ForEachDst(const Fn& fn) const {
  for (int64_t n = 0; n < dst_.N; ++n)
    for (int64_t k = 0; k < dst_.C; ++k)
      for (int64_t p = 0; p < dst_.plane(); ++p) fn(k, At(dst_, n, k, p / dst_.W, p % dst_.W));
}

std::vector<double> DefinedConvolution::Forward() const {
  std::vector<double> dst(dst_.elements());
  ForEachProduct(
      [&](int64_t s, int64_t w, int64_t d) { dst[d] += static_cast<double>(src[s]) * weight[w]; });
  ForEachDst([&](int64_t k, int64_t d) { dst[d] += bias[k]; });
  return dst;
}

std::vector<double> DefinedConvolution::BackwardData() const {
  std::vector<double> diff_src(src_.elements());
  ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    diff_src[s] += static_cast<double>(diff_dst[d]) * weight[w];
  });
  return diff_src;
}

std::vector<double> DefinedConvolution::BackwardWeights() const {
  std::vector<double> diff_weight(weight.size());
  ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    diff_weight[w] += static_cast<double>(src[s]) * diff_dst[d];
  });
  return diff_weight;
}

std::vector<double> DefinedConvolution::BackwardBias() const {
  std::vector<double> diff_bias(bias.size());
  ForEachDst([&](int64_t k, int64_t d) { diff_bias[k] += diff_dst[d]; });
  return diff_bias;
}

double RelativeError(std::span<const float> actual, std::span<const double> expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error / norm);
}

}  // namespace ringtail
