#include "layers/kernels/lrn.h"

#include <math.h>  // powf, a plain function: std::pow would be an inline one

namespace ringtail::RT_KERNEL_ISA {
namespace {

// s[t] of channel c.
inline void Normaliser(const LrnShape& shape, const float* src, int64_t c, float* s) {
  for (int64_t t = 0; t < kLrnTile; ++t) s[t] = 0;
  for (int64_t j = c - shape.half; j <= c + shape.half; ++j) {
    const float* row = src + j * kLrnTile;
#pragma omp simd
    for (int64_t t = 0; t < kLrnTile; ++t) s[t] += row[t] * row[t];
  }
#pragma omp simd
  for (int64_t t = 0; t < kLrnTile; ++t) s[t] = shape.k + shape.scale * s[t];
}

// power[t] = s[t]^-beta. The usual beta needs only square roots, which come in vectors.
inline void NegativePower(const float* s, float beta, float* power) {
  if (beta == 0.75F) {
#pragma omp simd
    for (int64_t t = 0; t < kLrnTile; ++t) {
      const float root = __builtin_sqrtf(s[t]);
      power[t] = 1 / (root * __builtin_sqrtf(root));
    }
    return;
  }
  for (int64_t t = 0; t < kLrnTile; ++t) power[t] = powf(s[t], -beta);
}

}  // namespace

void LrnForwardTile(const LrnShape& shape, const float* src, float* dst) {
  float s[kLrnTile], power[kLrnTile];
  for (int64_t c = 0; c < shape.channels; ++c) {
    const int64_t row = c * kLrnTile;
    Normaliser(shape, src, c, s);
    NegativePower(s, shape.beta, power);
#pragma omp simd
    for (int64_t t = 0; t < kLrnTile; ++t) dst[row + t] = src[row + t] * power[t];
  }
}

void LrnBackwardTile(const LrnShape& shape, const float* src, float* ratio, float* diff) {
  float s[kLrnTile], power[kLrnTile], sum[kLrnTile];
  for (int64_t c = 0; c < shape.channels; ++c) {
    const int64_t row = c * kLrnTile;
    Normaliser(shape, src, c, s);
    NegativePower(s, shape.beta, power);
#pragma omp simd
    for (int64_t t = 0; t < kLrnTile; ++t) {
      diff[row + t] *= power[t];
      ratio[row + t] = diff[row + t] * src[row + t] / s[t];
    }
  }
  const float factor = 2 * shape.scale * shape.beta;
  for (int64_t c = 0; c < shape.channels; ++c) {
    const int64_t row = c * kLrnTile;
    for (int64_t t = 0; t < kLrnTile; ++t) sum[t] = 0;
    for (int64_t j = c - shape.half; j <= c + shape.half; ++j) {
#pragma omp simd
      for (int64_t t = 0; t < kLrnTile; ++t) sum[t] += ratio[j * kLrnTile + t];
    }
#pragma omp simd
    for (int64_t t = 0; t < kLrnTile; ++t) diff[row + t] -= factor * src[row + t] * sum[t];
  }
}

template <typename Element>
void LoadLrnTile(const Element* data, int64_t channels, int64_t block, int64_t plane,
                 int64_t positions, float* tile) {
  for (int64_t c = 0; c < channels; ++c) {
    const Element* src = data + c / block * plane * block + c % block;
    float* row = tile + c * kLrnTile;
    for (int64_t t = 0; t < positions; ++t) row[t] = Widen(src[t * block]);
    for (int64_t t = positions; t < kLrnTile; ++t) row[t] = 0;
  }
}

template <typename Element>
void StoreLrnTile(const float* tile, int64_t channels, int64_t block, int64_t plane,
                  int64_t positions, Element* data) {
  for (int64_t c = 0; c < channels; ++c) {
    Element* dst = data + c / block * plane * block + c % block;
    const float* row = tile + c * kLrnTile;
    for (int64_t t = 0; t < positions; ++t) dst[t * block] = NarrowTo<Element>(row[t]);
  }
}

template void LoadLrnTile(const float*, int64_t, int64_t, int64_t, int64_t, float*);
template void StoreLrnTile(const float*, int64_t, int64_t, int64_t, int64_t, float*);
template void LoadLrnTile(const Bfloat16*, int64_t, int64_t, int64_t, int64_t, float*);
template void StoreLrnTile(const float*, int64_t, int64_t, int64_t, int64_t, Bfloat16*);

}  // namespace ringtail::RT_KERNEL_ISA
