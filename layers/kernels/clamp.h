// The clamp that every kernel with a fused activation uses, of a float or of a Vec (lane by lane).
// Only for layers/kernels/.
#ifndef RINGTAIL_LAYERS_KERNELS_CLAMP_H_
#define RINGTAIL_LAYERS_KERNELS_CLAMP_H_

namespace ringtail::RT_KERNEL_ISA {

// min(max(x, low), high). A NaN in x fails both comparisons, and so passes through.
template <typename Value>
[[gnu::always_inline]] static inline Value Clamped(Value x, Value low, Value high) {
  const Value above = x < low ? low : x;
  return above > high ? high : above;
}

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_CLAMP_H_
