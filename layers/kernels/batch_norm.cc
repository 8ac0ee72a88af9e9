#include "layers/kernels/batch_norm.h"

#include "layers/kernels/clamp.h"

// All loops walk the floats of a channel block in vectors of kLanes, a multiple of the block: lane
// l holds channel l % kBlock. So one source serves every block, and the sums run in kLanes
// independent chains, which is faster and rounds less than one.
namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int64_t kPiece = kBatchNormPiece;
constexpr int kSumLanes = 64;
constexpr int kMapLanes = kBatchNormLanes;
// Of maps: what fills a register of Elements, or the compiler would use half of one.
template <typename Element>
constexpr int kStepLanes = kMapLanes * sizeof(float) / sizeof(Element);

template <int kBlock, int kLanes>
void Spread(const float* channels, float* lanes) {
  for (int l = 0; l < kLanes; ++l) lanes[l] = channels[l % kBlock];
}

// total[c] += sum of the lanes of channel c, of which the first additions are in float: no sum that
// comes here has more than kPiece terms.
template <int kBlock, int kLanes>
void Fold(const float* lanes, double* total) {
  float sum[kMapLanes] = {};
#pragma GCC unroll 4
  for (int l = 0; l < kLanes; l += kMapLanes) {
#pragma omp simd
    for (int i = 0; i < kMapLanes; ++i) sum[i] += lanes[l + i];
  }
  for (int l = 0; l < kMapLanes; l += kBlock) {
#pragma omp simd
    for (int c = 0; c < kBlock; ++c) total[c] += sum[l + c];
  }
}

template <int kBlock, typename Element>
void PieceMean(const Element* src, int64_t n, float* mean) {
  float sum[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
#pragma omp simd
    for (int l = 0; l < kSumLanes; ++l) sum[l] += Widen(src[i + l]);
  }
  const int64_t rest = n - i;
#pragma omp simd
  for (int64_t l = 0; l < rest; ++l) sum[l] += Widen(src[i + l]);
  double total[kBlock] = {};
  Fold<kBlock, kSumLanes>(sum, total);
  for (int c = 0; c < kBlock; ++c) mean[c] = static_cast<float>(total[c] * kBlock / n);
}

// sum_d = sum(x - mean), sum_dd = sum((x - mean)^2).
template <int kBlock, typename Element>
void PieceDeviations(const Element* src, int64_t n, const float* mean, double* sum_d,
                     double* sum_dd) {
  float m[kSumLanes], d1[kSumLanes] = {}, d2[kSumLanes] = {};
  Spread<kBlock, kSumLanes>(mean, m);
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
#pragma omp simd
    for (int l = 0; l < kSumLanes; ++l) {
      const float d = Widen(src[i + l]) - m[l];
      d1[l] += d;
      d2[l] += d * d;
    }
  }
  const int64_t rest = n - i;
#pragma omp simd
  for (int64_t l = 0; l < rest; ++l) {
    const float d = Widen(src[i + l]) - m[l];
    d1[l] += d;
    d2[l] += d * d;
  }
  Fold<kBlock, kSumLanes>(d1, sum_d);
  Fold<kBlock, kSumLanes>(d2, sum_dd);
}

template <int kBlock, typename Element>
void Moments(const Element* src, int64_t n, double* mean, double* m2) {
  for (int c = 0; c < kBlock; ++c) mean[c] = m2[c] = 0;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t floats = begin + kPiece < n ? kPiece : n - begin;
    float piece_mean[kBlock];
    double sum_d[kBlock] = {}, sum_dd[kBlock] = {};
    PieceMean<kBlock>(src + begin, floats, piece_mean);
    PieceDeviations<kBlock>(src + begin, floats, piece_mean, sum_d, sum_dd);
    const double count = static_cast<double>(floats) / kBlock;
    const double before = static_cast<double>(begin) / kBlock;
    const double per_count = 1 / count, share = count / (before + count);
    for (int c = 0; c < kBlock; ++c) {  // sum_d corrects what the float mean lost
      const double exact_mean = piece_mean[c] + sum_d[c] * per_count;
      const double delta = exact_mean - mean[c];
      mean[c] += delta * share;
      m2[c] += sum_dd[c] - sum_d[c] * sum_d[c] * per_count + delta * delta * before * share;
    }
  }
}

template <int kBlock, typename Element>
void Apply(const Element* src, int64_t n, const ChannelAffine& affine, Element* dst) {
  float mean[kStepLanes<Element>], scale[kStepLanes<Element>], bias[kStepLanes<Element>];
  Spread<kBlock, kStepLanes<Element>>(affine.mean, mean);
  Spread<kBlock, kStepLanes<Element>>(affine.scale, scale);
  Spread<kBlock, kStepLanes<Element>>(affine.bias, bias);
  const float low = affine.low, high = affine.high;
  const auto y = [&](float x, int l) {
    return Clamped((x - mean[l]) * scale[l] + bias[l], low, high);
  };
  int64_t i = 0;
  for (; i + kStepLanes<Element> <= n; i += kStepLanes<Element>) {
#pragma omp simd
    for (int l = 0; l < kStepLanes<Element>; ++l)
      dst[i + l] = NarrowTo<Element>(y(Widen(src[i + l]), l));
  }
  for (int l = 0; i < n; ++i, ++l) dst[i] = NarrowTo<Element>(y(Widen(src[i]), l));
}

template <int kBlock, typename Element>
void GradientSums(const Element* src, const Element* diff_dst, int64_t n,
                  const ChannelAffine& affine, double* sum_g, double* sum_gx) {
  float mean[kMapLanes], scale[kMapLanes], bias[kMapLanes];
  Spread<kBlock, kMapLanes>(affine.mean, mean);
  Spread<kBlock, kMapLanes>(affine.scale, scale);
  Spread<kBlock, kMapLanes>(affine.bias, bias);
  const float low = affine.low, high = affine.high;
  for (int c = 0; c < kBlock; ++c) sum_g[c] = sum_gx[c] = 0;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t end = begin + kPiece < n ? begin + kPiece : n;
    float s[kMapLanes] = {}, sx[kMapLanes] = {};
    const auto add = [&](float x, float diff, int l) {
      const float centred = x - mean[l];
      const float y = centred * scale[l] + bias[l];
      const float g = ((y > low) & (y < high)) ? diff : 0;
      s[l] += g;
      sx[l] += g * centred;
    };
    int64_t i = begin;
    for (; i + kMapLanes <= end; i += kMapLanes) {
#pragma omp simd
      for (int l = 0; l < kMapLanes; ++l) add(Widen(src[i + l]), Widen(diff_dst[i + l]), l);
    }
    for (int l = 0; i < end; ++i, ++l) add(Widen(src[i]), Widen(diff_dst[i]), l);
    Fold<kBlock, kMapLanes>(s, sum_g);
    Fold<kBlock, kMapLanes>(sx, sum_gx);
  }
}

template <int kBlock, typename Element>
void Gradient(const Element* src, const Element* diff_dst, int64_t n, const ChannelAffine& affine,
              const float* slopes, const float* offsets, Element* diff_src) {
  float mean[kStepLanes<Element>], scale[kStepLanes<Element>], bias[kStepLanes<Element>],
      slope[kStepLanes<Element>], offset[kStepLanes<Element>];
  Spread<kBlock, kStepLanes<Element>>(affine.mean, mean);
  Spread<kBlock, kStepLanes<Element>>(affine.scale, scale);
  Spread<kBlock, kStepLanes<Element>>(affine.bias, bias);
  Spread<kBlock, kStepLanes<Element>>(slopes, slope);
  Spread<kBlock, kStepLanes<Element>>(offsets, offset);
  const float low = affine.low, high = affine.high;
  const auto gradient = [&](float x, float diff, int l) {
    const float centred = x - mean[l];
    const float y = centred * scale[l] + bias[l];
    const float g = ((y > low) & (y < high)) ? diff : 0;
    return scale[l] * g + (slope[l] * centred + offset[l]);
  };
  int64_t i = 0;
  for (; i + kStepLanes<Element> <= n; i += kStepLanes<Element>) {
#pragma omp simd
    for (int l = 0; l < kStepLanes<Element>; ++l) {
      diff_src[i + l] = NarrowTo<Element>(gradient(Widen(src[i + l]), Widen(diff_dst[i + l]), l));
    }
  }
  for (int l = 0; i < n; ++i, ++l) {
    diff_src[i] = NarrowTo<Element>(gradient(Widen(src[i]), Widen(diff_dst[i]), l));
  }
}

}  // namespace

template <typename Element>
void BatchNormMoments(const Element* src, int64_t pixels, int64_t block, double* mean, double* m2) {
  if (block == 16) return Moments<16>(src, pixels * 16, mean, m2);
  if (block == 8) return Moments<8>(src, pixels * 8, mean, m2);
  Moments<1>(src, pixels, mean, m2);
}

template <typename Element>
void BatchNormApply(const Element* src, int64_t pixels, int64_t block, const ChannelAffine& affine,
                    Element* dst) {
  if (block == 16) return Apply<16>(src, pixels * 16, affine, dst);
  if (block == 8) return Apply<8>(src, pixels * 8, affine, dst);
  Apply<1>(src, pixels, affine, dst);
}

template <typename Element>
void BatchNormGradientSums(const Element* src, const Element* diff_dst, int64_t pixels,
                           int64_t block, const ChannelAffine& affine, double* sum_g,
                           double* sum_gx) {
  if (block == 16) return GradientSums<16>(src, diff_dst, pixels * 16, affine, sum_g, sum_gx);
  if (block == 8) return GradientSums<8>(src, diff_dst, pixels * 8, affine, sum_g, sum_gx);
  GradientSums<1>(src, diff_dst, pixels, affine, sum_g, sum_gx);
}

template <typename Element>
void BatchNormGradient(const Element* src, const Element* diff_dst, int64_t pixels, int64_t block,
                       const ChannelAffine& affine, const float* slope, const float* offset,
                       Element* diff_src) {
  if (block == 16) {
    return Gradient<16>(src, diff_dst, pixels * 16, affine, slope, offset, diff_src);
  }
  if (block == 8) return Gradient<8>(src, diff_dst, pixels * 8, affine, slope, offset, diff_src);
  Gradient<1>(src, diff_dst, pixels, affine, slope, offset, diff_src);
}

template void BatchNormMoments(const float*, int64_t, int64_t, double*, double*);
template void BatchNormApply(const float*, int64_t, int64_t, const ChannelAffine&, float*);
template void BatchNormGradientSums(const float*, const float*, int64_t, int64_t,
                                    const ChannelAffine&, double*, double*);
template void BatchNormGradient(const float*, const float*, int64_t, int64_t, const ChannelAffine&,
                                const float*, const float*, float*);
template void BatchNormMoments(const Bfloat16*, int64_t, int64_t, double*, double*);
template void BatchNormApply(const Bfloat16*, int64_t, int64_t, const ChannelAffine&, Bfloat16*);
template void BatchNormGradientSums(const Bfloat16*, const Bfloat16*, int64_t, int64_t,
                                    const ChannelAffine&, double*, double*);
template void BatchNormGradient(const Bfloat16*, const Bfloat16*, int64_t, int64_t,
                                const ChannelAffine&, const float*, const float*, Bfloat16*);

}  // namespace ringtail::RT_KERNEL_ISA
