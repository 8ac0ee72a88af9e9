// Dropout: zeroes a fraction `rate` of src at training time and rescales the rest, so that
// evaluation is the identity.
//
//   src (N, C, H, W), any layout -> dst, same shape and layout
//   training: dst = src * m / (1 - rate), m ~ Bernoulli(1 - rate) per element
//             diff_src = diff_dst * m / (1 - rate)
//   evaluation: dst = src, diff_src = diff_dst
//
// State: none; Backward draws m again. m is a function of (run's seed, step, layer's key, position
// of the sample in the global batch, channel, y, x), whatever the layout and the number of threads
// and processes. In place in both directions.
// Cost: one Philox block, about 60 operations in vectors, per four elements and direction.
// Errors: InvalidArgument unless 0 <= rate < 1.
// Source: Srivastava et al., JMLR 15 (2014), section 4.
#ifndef RINGTAIL_LAYERS_DROPOUT_H_
#define RINGTAIL_LAYERS_DROPOUT_H_

#include "layers/layer.h"

namespace ringtail {

class DropoutConfig;

// The threshold below which 32 random bits drop an element: rate * 2^32.
uint32_t DropThreshold(float rate);
// The key of one layer's masks in one step.
RngKey DropoutKey(const StepContext& step, uint64_t layer_key);

class DropoutLayer : public Layer {
 public:
  DropoutLayer(const DropoutConfig& config, uint64_t key);
  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;

 private:
  // dst = src * m / (1 - rate).
  void Apply(const StepContext& step, const float* src, float* dst) const;

  const float rate_;
  const uint64_t key_;
  BlobDesc desc_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_DROPOUT_H_
