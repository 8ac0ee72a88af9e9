#include "layers/element_types/through_f32_layer.h"

#include <utility>

#include "layers/element_types/widen.h"
#include "layers/scratch_layout.h"

namespace ringtail {

ThroughF32Layer::ThroughF32Layer(std::unique_ptr<Layer> layer) : layer_(std::move(layer)) {}

StatusOr<ShapeInfo> ThroughF32Layer::InferShape(std::span<const BlobDesc> src) {
  return layer_->InferShape(src);
}

bool ThroughF32Layer::RunsOn(std::span<const BlobType>, BlobType) const { return true; }

StatusOr<LayerPlan> ThroughF32Layer::Setup(const SetupArgs& args) {
  std::vector<BlobDesc> wide;
  src_.clear();
  for (const BlobDesc& desc : args.src) {
    src_.push_back({desc});
    wide.push_back(desc.As(BlobType::kF32));
  }
  SetupArgs inner = args;
  inner.src = wide;
  inner.dst_type = BlobType::kF32;
  inner.may_round_operands = args.dst_type == BlobType::kBf16;
  inner.fusion = {};
  RT_ASSIGN_OR_RETURN(LayerPlan plan, layer_->Setup(inner));
  plan.dst.type = args.dst_type;
  plan.scratch_bytes = LayOutScratch(plan, args);
  plan.recomputable = false;
  plan.fusion = {};
  return plan;
}

// The layer's scratch comes first. What forward alone reads or writes shares its place with what
// backward writes.
size_t ThroughF32Layer::LayOutScratch(const LayerPlan& plan, const SetupArgs& args) {
  ScratchLayout layout;
  layout.AddBytes(plan.scratch_bytes);
  const auto place = [&](Port* port) {
    if (port->copies()) port->copy = layout.Add<float>(port->desc.elements());
  };
  for (Port& port : src_) place(&port);
  dst_.desc = plan.dst;
  place(&dst_);
  diff_dst_ = dst_;
  diff_src_ = src_;
  if (!args.training) return layout.bytes();
  if (plan.backward_needs_dst) place(&diff_dst_);
  for (size_t i = 0; i < diff_src_.size(); ++i) {
    if (plan.backward_needs_src && args.needs_diff_src[i]) place(&diff_src_[i]);
  }
  return layout.bytes();
}

void ThroughF32Layer::Forward(const ForwardArgs& args) {
  const auto copy = [&](const Port& port) { return ArrayAt<float>(args.scratch, port.copy); };
  std::vector<const float*> src(args.src.begin(), args.src.end());
  for (size_t i = 0; i < src.size(); ++i) {
    if (!src_[i].copies()) continue;
    WidenBlob(src_[i].desc, src[i], copy(src_[i]));
    src[i] = copy(src_[i]);
  }
  ForwardArgs inner = args;
  inner.src = src;
  if (dst_.copies()) inner.dst = copy(dst_);
  layer_->Forward(inner);
  if (dst_.copies()) NarrowBlob(dst_.desc, inner.dst, args.dst);
}

void ThroughF32Layer::Backward(const BackwardArgs& args) {
  const auto copy = [&](const Port& port) { return ArrayAt<float>(args.scratch, port.copy); };
  const auto widened = [&](const Port& port, const float* blob) -> const float* {
    if (blob == nullptr || !port.copies()) return blob;
    WidenBlob(port.desc, blob, copy(port));
    return copy(port);
  };
  BackwardArgs inner = args;
  std::vector<const float*> src(args.src.begin(), args.src.end());
  for (size_t i = 0; i < src.size(); ++i) src[i] = widened(src_[i], src[i]);
  inner.src = src;
  inner.dst = widened(dst_, args.dst);
  if (diff_dst_.copies()) {
    WidenBlob(diff_dst_.desc, args.diff_dst, copy(diff_dst_));
    inner.diff_dst = copy(diff_dst_);
  }
  std::vector<float*> diff_src(args.diff_src.begin(), args.diff_src.end());
  for (size_t i = 0; i < diff_src.size(); ++i) {
    if (diff_src[i] != nullptr && diff_src_[i].copies()) diff_src[i] = copy(diff_src_[i]);
  }
  inner.diff_src = diff_src;
  layer_->Backward(inner);
  for (size_t i = 0; i < diff_src.size(); ++i) {
    if (diff_src[i] == args.diff_src[i]) continue;
    NarrowBlob(diff_src_[i].desc, diff_src[i], args.diff_src[i]);
  }
}

std::string ThroughF32Layer::Implementation() const { return layer_->Implementation(); }

}  // namespace ringtail
