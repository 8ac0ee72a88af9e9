// ChannelAffine and ChannelGradient applied to registers: the same operations, and so the same
// bits, as BatchNormApply and BatchNormGradient.
// Only for layers/kernels/*.cc.
#ifndef RINGTAIL_LAYERS_KERNELS_VEC_AFFINE_H_
#define RINGTAIL_LAYERS_KERNELS_VEC_AFFINE_H_

#include "core/kernels/vec.h"
#include "layers/kernels/affine.h"
#include "layers/kernels/clamp.h"

namespace ringtail::RT_KERNEL_ISA {

// The map of one channel block of kLanes channels.
struct VecAffine {
  Vec mean, scale, bias, low, high;

  [[gnu::always_inline]] explicit VecAffine(const ChannelAffine& affine)
      : mean(Load(affine.mean)),
        scale(Load(affine.scale)),
        bias(Load(affine.bias)),
        low(Broadcast(affine.low)),
        high(Broadcast(affine.high)) {}

  [[gnu::always_inline]] Vec operator()(Vec x) const {
    return Clamped((x - mean) * scale + bias, low, high);
  }
};

// The gradient map of one channel block.
struct VecGradient {
  VecAffine affine;
  Vec slope, offset;

  [[gnu::always_inline]] explicit VecGradient(const ChannelGradient& map)
      : affine(map.affine), slope(Load(map.slope)), offset(Load(map.offset)) {}

  [[gnu::always_inline]] Vec operator()(Vec src, Vec diff_dst) const {
    const Vec centred = src - affine.mean;
    const Vec y = centred * affine.scale + affine.bias;
    const Vec above = y > affine.low ? diff_dst : Vec{};
    const Vec g = y < affine.high ? above : Vec{};
    return affine.scale * g + (slope * centred + offset);
  }
};

// The sums of BatchNormGradientSums over a few pixels of one channel block, in float.
struct VecGradientSums {
  Vec g = {}, gx = {};

  [[gnu::always_inline]] void Add(const VecAffine& affine, Vec src, Vec diff_dst) {
    const Vec centred = src - affine.mean;
    const Vec y = centred * affine.scale + affine.bias;
    const Vec above = y > affine.low ? diff_dst : Vec{};
    const Vec masked = y < affine.high ? above : Vec{};
    g += masked;
    gx += masked * centred;
  }
  [[gnu::always_inline]] void Add(const VecGradientSums& other) {
    g += other.g;
    gx += other.gx;
  }
};

struct VecIdentity {
  [[gnu::always_inline]] Vec operator()(Vec x) const { return x; }
};

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_VEC_AFFINE_H_
