// Hyperbolic tangent: dst = tanh(src); diff_src = (1 - dst^2) diff_dst. See layers/activations/elementwise.h.
#ifndef RINGTAIL_LAYERS_ACTIVATIONS_TANH_H_
#define RINGTAIL_LAYERS_ACTIVATIONS_TANH_H_

#include <string>

#include "layers/activations/elementwise.h"
#include "layers/net.pb.h"

namespace ringtail {

class TanhLayer : public ElementwiseLayer {
 public:
  explicit TanhLayer(const TanhConfig& config);
  std::string Implementation() const override;

 protected:
  void Map(const float* src, int64_t n, float* dst) const override;
  void MapGradient(const float* dst, const float* diff_dst, int64_t n,
                   float* diff_src) const override;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ACTIVATIONS_TANH_H_
