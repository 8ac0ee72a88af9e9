// Activation: an element-wise function that the layer before it can apply while it writes its dst
// (Layer::FuseActivation), because the gradient needs dst alone.
// Thread-safety: pure functions.
#ifndef RINGTAIL_LAYERS_ACTIVATION_H_
#define RINGTAIL_LAYERS_ACTIVATION_H_

#include <limits>

#include "core/check.h"

namespace ringtail {

enum class Activation { kNone, kRelu, kRelu6 };

// A kernel with a fused activation clamps to these bounds; the gradient is zero at and beyond them.
// The compiler asks for the bounds of a new one; one that is no clamp needs kernels of its own.
constexpr float LowerBound(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return -std::numeric_limits<float>::infinity();
    case Activation::kRelu:
    case Activation::kRelu6:
      return 0;
  }
  CheckFailed(__FILE__, __LINE__, "", "no such activation");
}
constexpr float UpperBound(Activation activation) {
  switch (activation) {
    case Activation::kNone:
    case Activation::kRelu:
      return std::numeric_limits<float>::infinity();
    case Activation::kRelu6:
      return 6;
  }
  CheckFailed(__FILE__, __LINE__, "", "no such activation");
}

// FuseActivation of a layer that fuses one activation, which it keeps in *fused.
inline bool FuseOnce(Activation activation, Activation* fused) {
  if (*fused != Activation::kNone) return false;
  *fused = activation;
  return true;
}

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ACTIVATION_H_
