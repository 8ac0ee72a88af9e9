// ReLU (Nair & Hinton 2010): dst = max(src, 0); diff_src = dst > 0 ? diff_dst : 0.
// See layers/activations/elementwise.h. Behind a convolution, linear, batch norm or add the net fuses it
// instead.
#ifndef RINGTAIL_LAYERS_ACTIVATIONS_RELU_H_
#define RINGTAIL_LAYERS_ACTIVATIONS_RELU_H_

#include "layers/activations/elementwise.h"
#include "layers/net.pb.h"

namespace ringtail {

class ReluLayer : public ElementwiseLayer {
 public:
  explicit ReluLayer(const ReluConfig& config);

 protected:
  void Map(const float* src, int64_t n, float* dst) const override;
  void MapGradient(const float* dst, const float* diff_dst, int64_t n,
                   float* diff_src) const override;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ACTIVATIONS_RELU_H_
