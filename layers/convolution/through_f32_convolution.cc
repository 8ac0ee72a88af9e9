#include "layers/convolution/through_f32_convolution.h"

#include <string>
#include <utility>

#include "layers/element_types/widen.h"
#include "layers/scratch_layout.h"

namespace ringtail {
namespace {

using Algorithm = std::unique_ptr<ConvolutionAlgorithm>;
using Direction = ConvolutionDirection;

class ThroughF32Convolution final : public ConvolutionAlgorithm {
 public:
  ThroughF32Convolution(const ConvolutionProblem& p, Direction direction, Algorithm algorithm)
      : algorithm_(std::move(algorithm)) {
    scratch_.AddBytes(algorithm_->scratch_bytes());
    const auto place = [&](const BlobDesc& desc, Port* port) {
      port->desc = desc;
      if (port->copies()) port->copy = scratch_.Add<float>(desc.elements());
    };
    // diff_src shares its place with src where only one of them is there.
    place(p.src, &src_);
    place(p.dst, &dst_);
    diff_src_ = src_;
    if (direction == Direction::kBackward) place(p.src, &diff_src_);
  }

  std::string name() const override { return algorithm_->name() + ":f32"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  bool takes_affine() const override { return algorithm_->takes_affine(); }

  void Run(const ConvolutionTensors& t) override {
    ConvolutionTensors inner = t;
    inner.src = Widened(src_, t.src, t.scratch);
    inner.diff_dst = Widened(dst_, t.diff_dst, t.scratch);
    inner.dst = PlaceOf(dst_, t.dst, t.scratch);
    inner.diff_src = PlaceOf(diff_src_, t.diff_src, t.scratch);
    algorithm_->Run(inner);
    if (inner.dst != t.dst) NarrowBlob(dst_.desc, inner.dst, t.dst);
    if (inner.diff_src != t.diff_src) NarrowBlob(diff_src_.desc, inner.diff_src, t.diff_src);
  }

 private:
  struct Port {
    BlobDesc desc;
    size_t copy = 0;  // in scratch
    bool copies() const { return desc.type != BlobType::kF32; }
  };

  static float* PlaceOf(const Port& port, float* blob, std::byte* scratch) {
    return blob != nullptr && port.copies() ? ArrayAt<float>(scratch, port.copy) : blob;
  }
  static const float* Widened(const Port& port, const float* blob, std::byte* scratch) {
    if (blob == nullptr || !port.copies()) return blob;
    float* const copy = ArrayAt<float>(scratch, port.copy);
    WidenBlob(port.desc, blob, copy);
    return copy;
  }

  const Algorithm algorithm_;
  ScratchLayout scratch_;
  Port src_, dst_, diff_src_;
};

}  // namespace

ConvolutionProblem AsF32Problem(const ConvolutionProblem& problem) {
  ConvolutionProblem f32 = problem;
  f32.src.type = f32.dst.type = BlobType::kF32;
  f32.dst_is_normalized = f32.diff_src_is_sum = false;
  return f32;
}

Algorithm ThroughF32(const ConvolutionProblem& problem, Direction direction, Algorithm algorithm) {
  return std::make_unique<ThroughF32Convolution>(problem, direction, std::move(algorithm));
}

}  // namespace ringtail
