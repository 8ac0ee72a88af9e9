#include "layers/add.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/text/counted.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/activation.h"
#include "layers/kernels/arithmetic.h"
#include "layers/parallel_blobs.h"
#include "layers/relayout.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

constexpr int64_t kPiece = 4096;  // elements that stay in the cache while they are copied

}  // namespace

AddLayer::AddLayer(const AddConfig&) {}

StatusOr<ShapeInfo> AddLayer::InferShape(std::span<const BlobDesc> src) {
  if (src.size() < 2) {
    return InvalidArgument(
        fmt::format("it has {}; it takes two or more", Counted(src.size(), "input")));
  }
  RT_RETURN_IF_ERROR(CheckBlobSize(src[0]));
  RT_RETURN_IF_ERROR(CheckSameShapes(src));
  return ShapeInfo{.dst = src[0], .parameters = {}};
}

bool AddLayer::FuseActivation(Activation activation) { return FuseOnce(activation, &activation_); }

StatusOr<LayerPlan> AddLayer::Setup(const SetupArgs& args) {
  src_.assign(args.src.begin(), args.src.end());
  const bool convert = std::any_of(
      src_.begin(), src_.end(), [&](const BlobDesc& desc) { return !SameLayout(desc, src_[0]); });
  return LayerPlan{.dst = src_[0],
                   .scratch_bytes = convert ? static_cast<size_t>(src_[0].bytes()) : 0,
                   .backward_needs_dst = activation_ != Activation::kNone,
                   .forward_in_place = true,
                   .backward_in_place = true};
}

void AddLayer::Forward(const ForwardArgs& args) {
  ForElementOf(src_[0].type, [&](auto element) { ForwardOn<decltype(element)>(args); });
}

template <typename Element>
void AddLayer::ForwardOn(const ForwardArgs& args) {
  const auto add = RT_KERNEL(AddClamped<Element>);
  auto* converted = reinterpret_cast<float*>(args.scratch);
  const Element* sum = ElementsOf<Element>(args.src[0]);
  auto* dst = ElementsOf<Element>(args.dst);
  for (size_t i = 1; i < src_.size(); ++i) {
    const Element* term = ElementsOf<Element>(args.src[i]);
    if (!SameLayout(src_[i], src_[0])) {
      Relayout(src_[i], args.src[i], src_[0], converted);
      term = ElementsOf<Element>(converted);
    }
    const Activation activation = i + 1 == src_.size() ? activation_ : Activation::kNone;
    ForEachElementRange(src_[0], [&](int64_t begin, int64_t end) {
      add(sum + begin, term + begin, end - begin, LowerBound(activation), UpperBound(activation),
          dst + begin);
    });
    sum = dst;
  }
}

void AddLayer::Backward(const BackwardArgs& args) {
  ForElementOf(src_[0].type, [&](auto element) { BackwardOn<decltype(element)>(args); });
}

template <typename Element>
void AddLayer::BackwardOn(const BackwardArgs& args) {
  const auto mask = RT_KERNEL(ClampGradient<Element>);
  ForEachElementRange(src_[0], [&](int64_t range_begin, int64_t range_end) {
    for (int64_t begin = range_begin; begin < range_end; begin += kPiece) {
      const int64_t n = std::min(kPiece, range_end - begin);
      Element* diff = ElementsOf<Element>(args.diff_dst) + begin;
      if (activation_ != Activation::kNone) {
        mask(ElementsOf<Element>(args.dst) + begin, diff, n, LowerBound(activation_),
             UpperBound(activation_), diff);
      }
      for (size_t i = 0; i < src_.size(); ++i) {
        float* copy = args.diff_src[i];
        if (copy == nullptr || copy == args.diff_dst || !SameLayout(src_[i], src_[0])) continue;
        std::memcpy(ElementsOf<Element>(copy) + begin, diff, n * sizeof(Element));
      }
    }
  });
  for (size_t i = 1; i < src_.size(); ++i) {
    if (args.diff_src[i] == nullptr || SameLayout(src_[i], src_[0])) continue;
    Relayout(src_[0], args.diff_dst, src_[i], args.diff_src[i]);
  }
}

std::string AddLayer::Implementation() const { return KernelImplementation(); }

}  // namespace ringtail
