#include "layers/dropout.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/parallel_for.h"
#include "layers/kernels/dropout.h"
#include "layers/net.pb.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

constexpr int64_t kElementsPerTask = 16384;  // about 10 us

// How one sample is cut into pieces that one call of a kernel handles.
struct Pieces {
  int64_t count, elements;
};

bool IsVector(const BlobDesc& desc) {
  return desc.plane() == 1;
}  // channels in order, in any block

Pieces PiecesOf(const BlobDesc& desc) {
  const int64_t sample = desc.elements() / desc.N;
  if (IsVector(desc)) return {1, sample};
  if (desc.block > 1) return {desc.channel_blocks(), desc.plane() * desc.block};
  return {(desc.C + kDropoutGroup - 1) / kDropoutGroup, desc.plane() * kDropoutGroup};
}

void DropPiece(const BlobDesc& desc, const DropoutDraw& draw, int64_t piece, const float* src,
               float* dst) {
  constexpr int64_t kAllGroups = int64_t{1} << 32;  // a vector has one position only
  if (IsVector(desc)) {
    RT_KERNEL(DropoutInterleaved)(draw, 0, kAllGroups, desc.elements() / desc.N, src, dst);
  } else if (desc.block > 1) {
    const int64_t groups = desc.block / kDropoutGroup;
    RT_KERNEL(DropoutInterleaved)
    (draw, static_cast<uint32_t>(piece * groups), groups, desc.plane() * desc.block, src, dst);
  } else {
    const int64_t channels = std::min(kDropoutGroup, desc.C - piece * kDropoutGroup);
    RT_KERNEL(DropoutPlanar)(draw, static_cast<uint32_t>(piece), channels, desc.plane(), src, dst);
  }
}

}  // namespace

uint32_t DropThreshold(float rate) { return static_cast<uint32_t>(rate * 0x1p32); }

RngKey DropoutKey(const StepContext& step, uint64_t layer_key) {
  return RngKey(step.seed).With(kDropoutStream).With(step.step).With(layer_key);
}

DropoutLayer::DropoutLayer(const DropoutConfig& config, uint64_t key)
    : rate_(config.rate()), key_(key) {}

StatusOr<ShapeInfo> DropoutLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  RT_RETURN_IF_ERROR(fields().FractionBelowOne("rate", rate_));
  ShapeInfo info;
  info.dst = src[0];
  return info;
}

StatusOr<LayerPlan> DropoutLayer::Setup(const SetupArgs& args) {
  desc_ = args.src[0];
  LayerPlan plan;
  plan.dst = desc_;
  plan.forward_in_place = true;
  plan.backward_in_place = true;
  return plan;
}

void DropoutLayer::Forward(const ForwardArgs& args) {
  const float* src = args.src[0];
  if (args.step->training) return Apply(*args.step, src, args.dst);
  if (args.dst == src) return;
  ParallelFor(desc_.elements(), kElementsPerTask, [&](int64_t begin, int64_t end) {
    std::memcpy(args.dst + begin, src + begin, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

void DropoutLayer::Backward(const BackwardArgs& args) {
  if (args.diff_src[0] != nullptr) Apply(*args.step, args.diff_dst, args.diff_src[0]);
}

void DropoutLayer::Apply(const StepContext& step, const float* src, float* dst) const {
  const RngKey key = DropoutKey(step, key_);
  const Pieces pieces = PiecesOf(desc_);
  const int64_t sample_elements = desc_.elements() / desc_.N;
  const int64_t grain = std::max<int64_t>(1, kElementsPerTask / pieces.elements);
  ParallelFor(desc_.N * pieces.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / pieces.count, piece = i % pieces.count;
      const uint64_t sample = static_cast<uint64_t>(step.first_sample + row);
      const DropoutDraw draw = {key.With(sample).bits(), DropThreshold(rate_), 1 / (1 - rate_)};
      const int64_t offset = row * sample_elements + piece * pieces.elements;
      DropPiece(desc_, draw, piece, src + offset, dst + offset);
    }
  });
}

}  // namespace ringtail
