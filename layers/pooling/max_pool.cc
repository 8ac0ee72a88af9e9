#include "layers/pooling/max_pool.h"

#include "layers/element_types/blob_elements.h"
#include "layers/parallel_blobs.h"
#include "layers/pooling/pool_window.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

constexpr int64_t kByteTaps = 256;  // taps that one byte can tell apart

// Calls fn(offset in src, offset in dst) for every channel block of every sample, in parallel.
template <typename Function>
void ForEachPlane(const BlobDesc& src, const BlobDesc& dst, const Function& fn) {
  const int64_t src_size = src.plane() * src.block, dst_size = dst.plane() * dst.block;
  ForEachChannelBlock(src, [&](int64_t i) { fn(i * src_size, i * dst_size); });
}

}  // namespace

MaxPoolLayer::MaxPoolLayer(const PoolConfig& config) : config_(config) {}

StatusOr<ShapeInfo> MaxPoolLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  RT_ASSIGN_OR_RETURN(const PoolWindow pool, ReadPoolWindow(config_, src[0], fields()));
  const Window& w = pool.window;
  geometry_ = {.H = src[0].H,
               .W = src[0].W,
               .OH = pool.dst.H,
               .OW = pool.dst.W,
               .KH = w.KH,
               .KW = w.KW,
               .SH = w.SH,
               .SW = w.SW,
               .PT = w.PT,
               .PL = w.PL};
  return ShapeInfo{.dst = pool.dst, .parameters = {}};
}

bool MaxPoolLayer::wide() const { return geometry_.KH * geometry_.KW > kByteTaps; }

StatusOr<LayerPlan> MaxPoolLayer::Setup(const SetupArgs& args) {
  src_ = dst_ = args.src[0];
  dst_.H = geometry_.OH;
  dst_.W = geometry_.OW;
  training_ = args.training;
  const size_t winner_bytes = wide() ? sizeof(int32_t) : sizeof(uint8_t);
  return LayerPlan{.dst = dst_, .state_bytes = training_ ? dst_.elements() * winner_bytes : 0};
}

void MaxPoolLayer::Forward(const ForwardArgs& args) {
  ForElementOf(src_.type, [&](auto element) { ForwardOn<decltype(element)>(args); });
}

template <typename Element>
void MaxPoolLayer::ForwardOn(const ForwardArgs& args) {
  const Element* from = ElementsOf<Element>(args.src[0]);
  Element* to = ElementsOf<Element>(args.dst);
  const auto run = [&](auto kernel, auto* winner) {
    ForEachPlane(src_, dst_, [&](int64_t src, int64_t dst) {
      kernel(from + src, geometry_, src_.block, to + dst, training_ ? winner + dst : nullptr);
    });
  };
  if (wide()) {
    return run(RT_KERNEL(MaxPoolForwardWide<Element>), reinterpret_cast<int32_t*>(args.state));
  }
  run(RT_KERNEL(MaxPoolForward<Element>), reinterpret_cast<uint8_t*>(args.state));
}

void MaxPoolLayer::Backward(const BackwardArgs& args) {
  if (args.diff_src[0] == nullptr) return;
  ForElementOf(src_.type, [&](auto element) { BackwardOn<decltype(element)>(args); });
}

template <typename Element>
void MaxPoolLayer::BackwardOn(const BackwardArgs& args) {
  const Element* from = ElementsOf<Element>(args.diff_dst);
  Element* to = ElementsOf<Element>(args.diff_src[0]);
  const auto run = [&](auto kernel, const auto* winner) {
    ForEachPlane(src_, dst_, [&](int64_t src, int64_t dst) {
      kernel(from + dst, winner + dst, geometry_, src_.block, to + src);
    });
  };
  if (wide()) {
    return run(RT_KERNEL(MaxPoolBackwardWide<Element>),
               reinterpret_cast<const int32_t*>(args.state));
  }
  run(RT_KERNEL(MaxPoolBackward<Element>), reinterpret_cast<const uint8_t*>(args.state));
}

std::string MaxPoolLayer::Implementation() const { return KernelImplementation(); }

}  // namespace ringtail
