// ReLU6 (Krizhevsky 2010): dst = min(max(src, 0), 6); diff_src = 0 < dst < 6 ? diff_dst : 0.
// See layers/activations/elementwise.h. Behind a convolution, linear, batch norm or add the net fuses it
// instead.
#ifndef RINGTAIL_LAYERS_ACTIVATIONS_RELU6_H_
#define RINGTAIL_LAYERS_ACTIVATIONS_RELU6_H_

#include "layers/activations/elementwise.h"
#include "layers/net.pb.h"

namespace ringtail {

class Relu6Layer : public ElementwiseLayer {
 public:
  explicit Relu6Layer(const Relu6Config& config);

 protected:
  void Map(const float* src, int64_t n, float* dst) const override;
  void MapGradient(const float* dst, const float* diff_dst, int64_t n,
                   float* diff_src) const override;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ACTIVATIONS_RELU6_H_
