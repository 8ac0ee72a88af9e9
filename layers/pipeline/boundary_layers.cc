#include "layers/pipeline/boundary_layers.h"

#include <cstring>

#include "core/check.h"
#include "core/parallel_for.h"
#include "layers/element_types/widen.h"
#include "layers/parallel_blobs.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

bool Rounds(const BlobDesc& blob, std::optional<BlobType> wire) {
  return wire == BlobType::kBf16 && blob.type == BlobType::kF32;
}

void Copy(const BlobDesc& blob, const std::byte* from, std::byte* to) {
  constexpr int64_t kGrainBytes = kGrainFloats * static_cast<int64_t>(sizeof(float));
  ParallelFor(blob.bytes(), kGrainBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, end - begin);
  });
}

void ToMessage(const BlobDesc& blob, std::optional<BlobType> wire, const float* from,
               std::byte* message) {
  RT_CHECK(message != nullptr, "a stage's pass needs memory for what it sends");
  if (Rounds(blob, wire)) {
    NarrowBlob(blob.As(BlobType::kBf16), from, reinterpret_cast<float*>(message));
  } else {
    Copy(blob, reinterpret_cast<const std::byte*>(from), message);
  }
}

void FromMessage(const BlobDesc& blob, std::optional<BlobType> wire, const std::byte* message,
                 float* to) {
  RT_CHECK(message != nullptr, "a stage's pass needs what it receives");
  if (Rounds(blob, wire)) {
    WidenBlob(blob.As(BlobType::kBf16), reinterpret_cast<const float*>(message), to);
  } else {
    Copy(blob, message, reinterpret_cast<std::byte*>(to));
  }
}

const StageBoundary& BoundaryOf(const StepContext& step) {
  RT_CHECK(step.boundary != nullptr, "a stage's net has neighbours");
  return *step.boundary;
}

}  // namespace

StatusOr<ShapeInfo> ReceiveLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  return ShapeInfo{.dst = src[0], .parameters = {}};
}

StatusOr<LayerPlan> ReceiveLayer::Setup(const SetupArgs& args) {
  blob_ = args.src[0].As(args.dst_type);
  return LayerPlan{.dst = blob_};
}

void ReceiveLayer::Forward(const ForwardArgs& args) {
  FromMessage(blob_, wire_, BoundaryOf(*args.step).received, args.dst);
}

void ReceiveLayer::Backward(const BackwardArgs& args) {
  ToMessage(blob_, wire_, args.diff_dst, BoundaryOf(*args.step).sent_gradient);
}

StatusOr<ShapeInfo> SendLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  return ShapeInfo{.dst = {}, .parameters = {}};
}

StatusOr<LayerPlan> SendLayer::Setup(const SetupArgs& args) {
  blob_ = args.src[0];
  return LayerPlan{.dst = BlobDesc{.type = args.dst_type}};
}

void SendLayer::Forward(const ForwardArgs& args) {
  ToMessage(blob_, wire_, args.src[0], BoundaryOf(*args.step).sent);
}

void SendLayer::Backward(const BackwardArgs& args) {
  if (args.diff_src[0] == nullptr) return;
  FromMessage(blob_, wire_, BoundaryOf(*args.step).received_gradient, args.diff_src[0]);
}

}  // namespace ringtail
