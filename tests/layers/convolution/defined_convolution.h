// A convolution with a 3x3 kernel on blobs in blocks of channels, with random tensors, and what its
// definition makes of them in double precision: for algorithms that compute it another way.
#ifndef RINGTAIL_TESTS_LAYERS_CONVOLUTION_DEFINED_CONVOLUTION_H_
#define RINGTAIL_TESTS_LAYERS_CONVOLUTION_DEFINED_CONVOLUTION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "layers/blob.h"
#include "layers/window.h"

namespace ringtail {

class DefinedConvolution {
 public:
  DefinedConvolution(const BlobDesc& src_desc, const BlobDesc& dst_desc, const Window& window);

  std::vector<double> Forward() const;  // with the bias
  std::vector<double> BackwardData() const;
  std::vector<double> BackwardWeights() const;
  std::vector<double> BackwardBias() const;

  // Calls fn(src offset, weight offset, dst offset) for every product in the definition.
  template <typename Fn>
  void ForEachProduct(const Fn& fn) const;

  std::vector<float> src, diff_dst, weight, bias;

 private:
  static constexpr int64_t kSide = 3, kTaps = kSide * kSide;
  static int64_t At(const BlobDesc& d, int64_t n, int64_t c, int64_t y, int64_t x) {
    return ((n * d.channel_blocks() + c / d.block) * d.plane() + y * d.W + x) * d.block +
           c % d.block;
  }
  // Calls fn(channel, dst offset) for every value of dst.
  template <typename Fn>
  void ForEachDst(const Fn& fn) const;

  const BlobDesc src_, dst_;
  const Window window_;
};

// The norm of the difference, in parts of that of `expected`.
double RelativeError(std::span<const float> actual, std::span<const double> expected);

template <typename Fn>
void DefinedConvolution::ForEachProduct(const Fn& fn) const {
  const BlobDesc &s = src_, &d = dst_;
  const Window& w = window_;
  for (int64_t n = 0; n < d.N; ++n)
    for (int64_t k = 0; k < d.C; ++k)
      for (int64_t c = 0; c < s.C; ++c)
        for (int64_t tap = 0; tap < kTaps; ++tap)
          for (int64_t y = 0; y < d.H; ++y) {
            const int64_t sy = w.SH * y + tap / kSide - w.PT;
            if (sy < 0 || sy >= s.H) continue;
            const int64_t src_row = At(s, n, c, sy, 0), dst_row = At(d, n, k, y, 0);
            for (int64_t x = 0; x < d.W; ++x) {
              const int64_t sx = w.SW * x + tap % kSide - w.PL;
              if (sx < 0 || sx >= s.W) continue;
              fn(src_row + sx * s.block, (k * s.C + c) * kTaps + tap, dst_row + x * d.block);
            }
          }
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_CONVOLUTION_DEFINED_CONVOLUTION_H_
