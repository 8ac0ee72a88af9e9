#include "layers/activations/elementwise.h"

#include "core/kernel_isa.h"
#include "layers/parallel_blobs.h"
#include "layers/relayout.h"
#include "layers/shape_check.h"

namespace ringtail {

StatusOr<ShapeInfo> ElementwiseLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  RT_RETURN_IF_ERROR(CheckBlobSize(src[0]));
  RT_RETURN_IF_ERROR(CheckConfig());
  return ShapeInfo{.dst = src[0], .parameters = {}};
}

StatusOr<LayerPlan> ElementwiseLayer::Setup(const SetupArgs& args) {
  RequireF32(args.src);
  desc_ = args.src[0];
  return LayerPlan{.dst = desc_,
                   .backward_needs_dst = true,
                   .forward_in_place = true,
                   .backward_in_place = true};
}

void ElementwiseLayer::Forward(const ForwardArgs& args) {
  ForEachElementRange(desc_, [&](int64_t begin, int64_t end) {
    Map(args.src[0] + begin, end - begin, args.dst + begin);
  });
  if (!ZeroToZero()) ZeroPaddingChannels(desc_, args.dst);
}

void ElementwiseLayer::Backward(const BackwardArgs& args) {
  if (args.diff_src[0] == nullptr) return;
  ForEachElementRange(desc_, [&](int64_t begin, int64_t end) {
    MapGradient(args.dst + begin, args.diff_dst + begin, end - begin, args.diff_src[0] + begin);
  });
}

std::string ElementwiseLayer::Implementation() const { return KernelImplementation(); }

}  // namespace ringtail
