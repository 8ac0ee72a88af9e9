#include "layers/highway_gate.h"

#include <fmt/core.h>

#include <algorithm>

#include "layers/kernels/highway_gate.h"
#include "layers/net.pb.h"
#include "layers/parallel_blobs.h"
#include "layers/relayout.h"
#include "layers/scratch_layout.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

float* Advance(float* pointer, int64_t n) { return pointer == nullptr ? nullptr : pointer + n; }

}  // namespace

HighwayGateLayer::HighwayGateLayer(const HighwayGateConfig&) {}

StatusOr<ShapeInfo> HighwayGateLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), kInputs));
  for (size_t i = 1; i < kInputs; ++i) {
    if (src[i].SameShape(src[0])) continue;
    return InvalidArgument(fmt::format("input {} is {}, but input 0 is {}: h, t and x must agree",
                                       i, src[i].ShapeString(), src[0].ShapeString()));
  }
  return ShapeInfo{.dst = src[0], .parameters = {}};
}

StatusOr<LayerPlan> HighwayGateLayer::Setup(const SetupArgs& args) {
  RequireF32(args.src);
  std::ranges::copy(args.src, src_.begin());
  ScratchLayout scratch;
  if (src_[1] != src_[0] || src_[2] != src_[0]) {
    for (size_t i = 1; i < kInputs; ++i) converted_[i] = scratch.AddBytes(src_[0].bytes());
  }
  return LayerPlan{.dst = src_[0],
                   .scratch_bytes = scratch.bytes(),
                   .backward_needs_src = true,
                   .forward_in_place = !args.training,  // Backward needs h as it was
                   .backward_in_place = true};
}

std::array<const float*, HighwayGateLayer::kInputs> HighwayGateLayer::Sources(
    std::span<const float* const> src, std::byte* scratch) const {
  std::array<const float*, kInputs> sources = {src[0], src[1], src[2]};
  for (size_t i = 1; i < kInputs; ++i) {
    if (src_[i] == src_[0]) continue;
    float* converted = ArrayAt<float>(scratch, converted_[i]);
    Relayout(src_[i], src[i], src_[0], converted);
    sources[i] = converted;
  }
  return sources;
}

void HighwayGateLayer::Forward(const ForwardArgs& args) {
  const std::array<const float*, kInputs> src = Sources(args.src, args.scratch);
  ForEachElementRange(src_[0], [&](int64_t begin, int64_t end) {
    RT_KERNEL(HighwayGateForward, src[0] + begin, src[1] + begin, src[2] + begin, args.dst + begin,
              end - begin);
  });
}

void HighwayGateLayer::Backward(const BackwardArgs& args) {
  const std::array<const float*, kInputs> src = Sources(args.src, args.scratch);
  // A gradient that is wanted in another layout overwrites the converted copy of its input.
  std::array<float*, kInputs> diff = {args.diff_src[0], args.diff_src[1], args.diff_src[2]};
  for (size_t i = 1; i < kInputs; ++i) {
    if (diff[i] != nullptr && src_[i] != src_[0])
      diff[i] = ArrayAt<float>(args.scratch, converted_[i]);
  }
  ForEachElementRange(src_[0], [&](int64_t begin, int64_t end) {
    RT_KERNEL(HighwayGateBackward, src[0] + begin, src[1] + begin, src[2] + begin,
              args.diff_dst + begin, Advance(diff[0], begin), Advance(diff[1], begin),
              Advance(diff[2], begin), end - begin);
  });
  for (size_t i = 1; i < kInputs; ++i) {
    if (diff[i] != args.diff_src[i]) Relayout(src_[0], diff[i], src_[i], args.diff_src[i]);
  }
}

}  // namespace ringtail
