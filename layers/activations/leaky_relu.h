// Leaky ReLU (Maas et al. 2013): dst = src > 0 ? src : slope src; diff_src = diff_dst, times slope
// where dst <= 0. See layers/activations/elementwise.h. Errors: slope outside 0 .. 1 (InferShape).
#ifndef RINGTAIL_LAYERS_ACTIVATIONS_LEAKY_RELU_H_
#define RINGTAIL_LAYERS_ACTIVATIONS_LEAKY_RELU_H_

#include "layers/activations/elementwise.h"
#include "layers/net.pb.h"

namespace ringtail {

class LeakyReluLayer : public ElementwiseLayer {
 public:
  explicit LeakyReluLayer(const LeakyReluConfig& config);

 protected:
  void Map(const float* src, int64_t n, float* dst) const override;
  void MapGradient(const float* dst, const float* diff_dst, int64_t n,
                   float* diff_src) const override;
  Status CheckConfig() override;

 private:
  const LeakyReluConfig config_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ACTIVATIONS_LEAKY_RELU_H_
