#include "layers/activations/elementwise.h"

#include <algorithm>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"
#include "layers/element_types/blob_elements.h"
#include "layers/parallel_blobs.h"
#include "layers/relayout.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

constexpr int64_t kPiece = 1024;  // floats that stay in the first-level cache

// Calls fn(first element, elements) for all pieces of a blob, in parallel.
template <typename Function>
void ForEachPiece(const BlobDesc& desc, const Function& fn) {
  ForEachElementRange(desc, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kPiece) fn(at, std::min(kPiece, end - at));
  });
}

}  // namespace

StatusOr<ShapeInfo> ElementwiseLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  RT_RETURN_IF_ERROR(CheckBlobSize(src[0]));
  RT_RETURN_IF_ERROR(CheckConfig());
  return ShapeInfo{.dst = src[0], .parameters = {}};
}

StatusOr<LayerPlan> ElementwiseLayer::Setup(const SetupArgs& args) {
  desc_ = args.src[0];
  return LayerPlan{.dst = desc_,
                   .backward_needs_dst = true,
                   .forward_in_place = true,
                   .backward_in_place = true};
}

void ElementwiseLayer::Forward(const ForwardArgs& args) {
  if (desc_.type == BlobType::kBf16) {
    ForwardBf16(ElementsOf<Bfloat16>(args.src[0]), ElementsOf<Bfloat16>(args.dst));
  } else {
    ForEachElementRange(desc_, [&](int64_t begin, int64_t end) {
      Map(args.src[0] + begin, end - begin, args.dst + begin);
    });
  }
  if (!ZeroToZero()) ZeroPaddingChannels(desc_, args.dst);
}

void ElementwiseLayer::Backward(const BackwardArgs& args) {
  if (args.diff_src[0] == nullptr) return;
  if (desc_.type == BlobType::kBf16) {
    return BackwardBf16(ElementsOf<Bfloat16>(args.dst), ElementsOf<Bfloat16>(args.diff_dst),
                        ElementsOf<Bfloat16>(args.diff_src[0]));
  }
  ForEachElementRange(desc_, [&](int64_t begin, int64_t end) {
    MapGradient(args.dst + begin, args.diff_dst + begin, end - begin, args.diff_src[0] + begin);
  });
}

void ElementwiseLayer::ForwardBf16(const Bfloat16* src, Bfloat16* dst) const {
  ForEachPiece(desc_, [&](int64_t at, int64_t n) {
    float y[kPiece];
    RT_KERNEL(WidenBfloat16, src + at, n, y);
    Map(y, n, y);
    RT_KERNEL(NarrowToBfloat16, y, n, dst + at);
  });
}

void ElementwiseLayer::BackwardBf16(const Bfloat16* dst, const Bfloat16* diff_dst,
                                    Bfloat16* diff_src) const {
  ForEachPiece(desc_, [&](int64_t at, int64_t n) {
    float y[kPiece], diff[kPiece];
    RT_KERNEL(WidenBfloat16, dst + at, n, y);
    RT_KERNEL(WidenBfloat16, diff_dst + at, n, diff);
    MapGradient(y, diff, n, diff);
    RT_KERNEL(NarrowToBfloat16, diff, n, diff_src + at);
  });
}

std::string ElementwiseLayer::Implementation() const { return KernelImplementation(); }

}  // namespace ringtail
