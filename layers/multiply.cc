#include "layers/multiply.h"

#include "layers/kernels/arithmetic.h"
#include "layers/parallel_blobs.h"
#include "layers/relayout.h"
#include "layers/shape_check.h"

namespace ringtail {

MultiplyLayer::MultiplyLayer(const MultiplyConfig&) {}

StatusOr<ShapeInfo> MultiplyLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), src_.size()));
  RT_RETURN_IF_ERROR(CheckBlobSize(src[0]));
  RT_RETURN_IF_ERROR(CheckSameShapes(src));
  return ShapeInfo{.dst = src[0], .parameters = {}};
}

StatusOr<LayerPlan> MultiplyLayer::Setup(const SetupArgs& args) {
  RequireF32(args.src);
  src_ = {args.src[0], args.src[1]};
  return LayerPlan{.dst = src_[0],
                   .scratch_bytes = converts() ? static_cast<size_t>(src_[0].bytes()) : 0,
                   .backward_needs_src = true,
                   .forward_in_place = !args.training,  // Backward needs src[0] as it was
                   .backward_in_place = true};
}

bool MultiplyLayer::converts() const { return !SameLayout(src_[1], src_[0]); }

const float* MultiplyLayer::SecondFactor(const float* src, std::byte* scratch) const {
  if (!converts()) return src;
  auto* converted = reinterpret_cast<float*>(scratch);
  Relayout(src_[1], src, src_[0], converted);
  return converted;
}

void MultiplyLayer::Forward(const ForwardArgs& args) {
  const auto multiply = RT_KERNEL(Multiply);
  const float* factor = SecondFactor(args.src[1], args.scratch);
  ForEachElementRange(src_[0], [&](int64_t begin, int64_t end) {
    multiply(args.src[0] + begin, factor + begin, end - begin, args.dst + begin);
  });
}

void MultiplyLayer::Backward(const BackwardArgs& args) {
  const auto multiply = RT_KERNEL(Multiply);
  const auto gradient = RT_KERNEL(MultiplyGradient);
  const float* factor = SecondFactor(args.src[1], args.scratch);
  float* diff_a = args.diff_src[0];
  // A gradient that is wanted in another layout is made over the converted factor.
  float* diff_b = args.diff_src[1] == nullptr || !converts()
                      ? args.diff_src[1]
                      : reinterpret_cast<float*>(args.scratch);
  ForEachElementRange(src_[0], [&](int64_t begin, int64_t end) {
    const float *a = args.src[0] + begin, *diff = args.diff_dst + begin;
    if (diff_a != nullptr && diff_b != nullptr) {
      gradient(a, factor + begin, diff, end - begin, diff_a + begin, diff_b + begin);
    } else if (diff_a != nullptr) {
      multiply(diff, factor + begin, end - begin, diff_a + begin);
    } else if (diff_b != nullptr) {
      multiply(diff, a, end - begin, diff_b + begin);
    }
  });
  if (diff_b != args.diff_src[1]) Relayout(src_[0], diff_b, src_[1], args.diff_src[1]);
}

std::string MultiplyLayer::Implementation() const { return KernelImplementation(); }

}  // namespace ringtail
