// The activations: functions of one element (layers/activations/elementwise.h has shapes, memory
// and cost). ReLU and ReLU6 are fused into the layer before them where that layer can
// (Layer::FuseActivation); these classes run elsewhere.
#ifndef RINGTAIL_LAYERS_ACTIVATIONS_ACTIVATIONS_H_
#define RINGTAIL_LAYERS_ACTIVATIONS_ACTIVATIONS_H_

#include <string>

#include "layers/activations/elementwise.h"
#include "layers/net.pb.h"

namespace ringtail {

// dst = min(max(src, low), high); diff_src = low < dst < high ? diff_dst : 0, with the bounds of
// the activation (layers/activation.h).
class ClampLayer : public ElementwiseLayer {
 protected:
  explicit ClampLayer(Activation activation);
  void Map(const float* src, int64_t n, float* dst) const override;
  void MapGradient(const float* dst, const float* diff_dst, int64_t n,
                   float* diff_src) const override;

 private:
  const float low_, high_;
};

// ReLU (Nair & Hinton 2010): dst = max(src, 0).
class ReluLayer : public ClampLayer {
 public:
  explicit ReluLayer(const ReluConfig&) : ClampLayer(Activation::kRelu) {}
};

// ReLU6 (Krizhevsky 2010): dst = min(max(src, 0), 6).
class Relu6Layer : public ClampLayer {
 public:
  explicit Relu6Layer(const Relu6Config&) : ClampLayer(Activation::kRelu6) {}
};

// Leaky ReLU (Maas et al. 2013): dst = src > 0 ? src : slope src; diff_src = diff_dst, times slope
// where dst <= 0. Errors: slope outside 0 .. 1 (InferShape).
class LeakyReluLayer : public ElementwiseLayer {
 public:
  explicit LeakyReluLayer(const LeakyReluConfig& config) : config_(config) {}

 protected:
  void Map(const float* src, int64_t n, float* dst) const override;
  void MapGradient(const float* dst, const float* diff_dst, int64_t n,
                   float* diff_src) const override;
  Status CheckConfig() override;

 private:
  const LeakyReluConfig config_;
};

// Sigmoid: dst = 1 / (1 + e^-src); diff_src = dst (1 - dst) diff_dst. Forward is the C library's
// exponential function, element by element.
class SigmoidLayer : public ElementwiseLayer {
 public:
  explicit SigmoidLayer(const SigmoidConfig&) {}
  std::string Implementation() const override;

 protected:
  void Map(const float* src, int64_t n, float* dst) const override;
  void MapGradient(const float* dst, const float* diff_dst, int64_t n,
                   float* diff_src) const override;
  bool ZeroToZero() const override { return false; }
};

// Hyperbolic tangent: dst = tanh(src), the C library's; diff_src = (1 - dst^2) diff_dst.
class TanhLayer : public ElementwiseLayer {
 public:
  explicit TanhLayer(const TanhConfig&) {}
  std::string Implementation() const override;

 protected:
  void Map(const float* src, int64_t n, float* dst) const override;
  void MapGradient(const float* dst, const float* diff_dst, int64_t n,
                   float* diff_src) const override;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ACTIVATIONS_ACTIVATIONS_H_
