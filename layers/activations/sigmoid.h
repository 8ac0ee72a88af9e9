// Sigmoid: dst = 1 / (1 + e^-src); diff_src = dst (1 - dst) diff_dst. See layers/activations/elementwise.h.
#ifndef RINGTAIL_LAYERS_ACTIVATIONS_SIGMOID_H_
#define RINGTAIL_LAYERS_ACTIVATIONS_SIGMOID_H_

#include <string>

#include "layers/activations/elementwise.h"
#include "layers/net.pb.h"

namespace ringtail {

class SigmoidLayer : public ElementwiseLayer {
 public:
  explicit SigmoidLayer(const SigmoidConfig& config);
  std::string Implementation() const override;

 protected:
  void Map(const float* src, int64_t n, float* dst) const override;
  void MapGradient(const float* dst, const float* diff_dst, int64_t n,
                   float* diff_src) const override;
  bool ZeroToZero() const override { return false; }
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ACTIVATIONS_SIGMOID_H_
