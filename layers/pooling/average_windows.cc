#include "layers/pooling/average_windows.h"

#include "layers/element_types/blob_elements.h"
#include "layers/parallel_blobs.h"
#include "layers/shape_check.h"

namespace ringtail {

StatusOr<ShapeInfo> AverageWindowsLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  RT_RETURN_IF_ERROR(CheckBlobSize(src[0]));
  RT_RETURN_IF_ERROR(FindWindows(src[0], &rows_, &columns_));
  BlobDesc dst = src[0];
  dst.H = static_cast<int64_t>(rows_.size());
  dst.W = static_cast<int64_t>(columns_.size());
  RT_RETURN_IF_ERROR(CheckBlobSize(dst));
  return ShapeInfo{.dst = dst, .parameters = {}};
}

StatusOr<LayerPlan> AverageWindowsLayer::Setup(const SetupArgs& args) {
  src_ = args.src[0];
  BlobDesc dst = src_;
  dst.H = static_cast<int64_t>(rows_.size());
  dst.W = static_cast<int64_t>(columns_.size());
  if (dst.plane() == 1 && dst.C % dst.block == 0) dst.block = 1;
  return LayerPlan{.dst = dst};
}

AveragePoolGeometry AverageWindowsLayer::Geometry() const {
  return {.H = src_.H,
          .W = src_.W,
          .OH = static_cast<int64_t>(rows_.size()),
          .OW = static_cast<int64_t>(columns_.size()),
          .rows = rows_.data(),
          .columns = columns_.data()};
}

void AverageWindowsLayer::Forward(const ForwardArgs& args) {
  const AveragePoolGeometry g = Geometry();
  const int64_t src_size = src_.plane() * src_.block, dst_size = g.OH * g.OW * src_.block;
  ForElementOf(src_.type, [&](auto element) {
    using Element = decltype(element);
    const auto kernel = RT_KERNEL(AveragePoolForward<Element>);
    const Element* src = ElementsOf<Element>(args.src[0]);
    Element* dst = ElementsOf<Element>(args.dst);
    ForEachChannelBlock(
        src_, [&](int64_t i) { kernel(src + i * src_size, g, src_.block, dst + i * dst_size); });
  });
}

void AverageWindowsLayer::Backward(const BackwardArgs& args) {
  if (args.diff_src[0] == nullptr) return;
  const AveragePoolGeometry g = Geometry();
  const int64_t src_size = src_.plane() * src_.block, dst_size = g.OH * g.OW * src_.block;
  ForElementOf(src_.type, [&](auto element) {
    using Element = decltype(element);
    const auto kernel = RT_KERNEL(AveragePoolBackward<Element>);
    const Element* diff_dst = ElementsOf<Element>(args.diff_dst);
    Element* diff_src = ElementsOf<Element>(args.diff_src[0]);
    ForEachChannelBlock(src_, [&](int64_t i) {
      kernel(diff_dst + i * dst_size, g, src_.block, diff_src + i * src_size);
    });
  });
}

std::string AverageWindowsLayer::Implementation() const { return KernelImplementation(); }

}  // namespace ringtail
