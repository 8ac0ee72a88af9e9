#include "layers/dropout.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/kernels/dropout.h"
#include "layers/net.pb.h"
#include "layers/parallel_blobs.h"
#include "layers/relayout.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

// How one sample is cut into pieces that one call of a kernel handles.
struct Pieces {
  int64_t count, elements;
};

// Channels in order, in any block.
bool IsVector(const BlobDesc& desc) { return desc.plane() == 1; }

Pieces PiecesOf(const BlobDesc& desc) {
  const int64_t sample = desc.elements() / desc.N;
  if (IsVector(desc)) return {1, sample};
  if (desc.block > 1) return {desc.channel_blocks(), desc.plane() * desc.block};
  return {CeilDivide(desc.C, kDropoutGroup), desc.plane() * kDropoutGroup};
}

void DropPiece(const BlobDesc& desc, const DropoutDraw& draw, int64_t piece, const float* src,
               float* dst) {
  constexpr int64_t kAllGroups = int64_t{1} << 32;  // a vector has one position only
  if (IsVector(desc)) {
    RT_KERNEL(DropoutInterleaved, draw, 0, kAllGroups, desc.elements() / desc.N, src, dst);
  } else if (desc.block > 1) {
    const int64_t groups = desc.block / kDropoutGroup;
    RT_KERNEL(DropoutInterleaved, draw, static_cast<uint32_t>(piece * groups), groups,
              desc.plane() * desc.block, src, dst);
  } else {
    const int64_t channels = std::min(kDropoutGroup, desc.C - piece * kDropoutGroup);
    RT_KERNEL(DropoutPlanar, draw, static_cast<uint32_t>(piece), channels, desc.plane(), src, dst);
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
  return ShapeInfo{.dst = src[0], .parameters = {}};
}

StatusOr<LayerPlan> DropoutLayer::Setup(const SetupArgs& args) {
  RequireF32(args.src);
  desc_ = args.src[0];
  return LayerPlan{.dst = desc_, .forward_in_place = true, .backward_in_place = true};
}

void DropoutLayer::Forward(const ForwardArgs& args) {
  const float* src = args.src[0];
  if (args.step->training) return Apply(*args.step, src, args.dst);
  if (args.dst != src) CopyBlob(desc_, src, args.dst);
}

void DropoutLayer::Backward(const BackwardArgs& args) {
  float* diff_src = args.diff_src[0];
  if (diff_src == nullptr) return;
  if (args.step->training) return Apply(*args.step, args.diff_dst, diff_src);
  if (diff_src != args.diff_dst) CopyBlob(desc_, args.diff_dst, diff_src);
}

void DropoutLayer::Apply(const StepContext& step, const float* src, float* dst) const {
  const RngKey key = DropoutKey(step, key_);
  const Pieces pieces = PiecesOf(desc_);
  const int64_t sample_elements = desc_.elements() / desc_.N;
  ParallelFor(desc_.N * pieces.count, Grain(pieces.elements), [&](int64_t begin, int64_t end) {
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
