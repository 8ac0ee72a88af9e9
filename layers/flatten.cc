#include "layers/flatten.h"

#include "layers/relayout.h"
#include "layers/shape_check.h"

namespace ringtail {

StatusOr<ShapeInfo> FlattenLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  return ShapeInfo{.dst = {.N = src[0].N, .C = src[0].C * src[0].plane()}, .parameters = {}};
}

StatusOr<LayerPlan> FlattenLayer::Setup(const SetupArgs& args) {
  src_ = plain_ = args.src[0];
  plain_.block = 1;
  const bool same_order = src_.block == 1 || (src_.plane() == 1 && src_.C % src_.block == 0);
  return LayerPlan{.dst = {.N = src_.N, .C = src_.C * src_.plane(), .type = src_.type},
                   .forward_in_place = same_order,
                   .backward_in_place = same_order};
}

void FlattenLayer::Forward(const ForwardArgs& args) {
  if (args.dst != args.src[0]) Relayout(src_, args.src[0], plain_, args.dst);
}

void FlattenLayer::Backward(const BackwardArgs& args) {
  if (args.diff_src[0] == nullptr || args.diff_src[0] == args.diff_dst) return;
  Relayout(plain_, args.diff_dst, src_, args.diff_src[0]);
}

}  // namespace ringtail
