// ElementwiseLayer: what the activations share. A subclass maps ranges of floats
// (layers/activations/activations.h).
//   src (N, C, H, W) -> dst (N, C, H, W), layout of src; dst[i] = f(src[i])
//   diff_src[i] = f'(src[i]) diff_dst[i], where f' can be computed from dst[i]
// In place both ways: src is not kept. State, scratch: none. Cost: memory-bound.
#ifndef RINGTAIL_LAYERS_ACTIVATIONS_ELEMENTWISE_H_
#define RINGTAIL_LAYERS_ACTIVATIONS_ELEMENTWISE_H_

#include <string>

#include "core/kernels/bfloat16.h"
#include "layers/layer.h"

namespace ringtail {

class ElementwiseLayer : public Layer {
 public:
  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool RunsOn(std::span<const BlobType> src, BlobType dst) const override {
    return AllAre(src, dst);
  }
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;

 protected:
  // Over n floats; dst may be src, diff_src may be diff_dst. Called from several threads at once.
  virtual void Map(const float* src, int64_t n, float* dst) const = 0;
  virtual void MapGradient(const float* dst, const float* diff_dst, int64_t n,
                           float* diff_src) const = 0;
  virtual Status CheckConfig() { return OkStatus(); }
  virtual bool ZeroToZero() const { return true; }  // f(0) = 0: padding channels stay zero

 private:
  // A piece at a time becomes floats and back, in the first-level cache.
  void ForwardBf16(const Bfloat16* src, Bfloat16* dst) const;
  void BackwardBf16(const Bfloat16* dst, const Bfloat16* diff_dst, Bfloat16* diff_src) const;
  BlobDesc desc_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ACTIVATIONS_ELEMENTWISE_H_
