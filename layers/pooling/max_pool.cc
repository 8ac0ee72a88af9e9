#include "layers/pooling/max_pool.h"

#include "layers/parallel_blobs.h"
#include "layers/pooling/pool_window.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

constexpr int64_t kByteTaps = 256;  // taps that one byte can tell apart

// Calls fn(offset in src, offset in dst) for every channel block of every sample, in parallel.
template <typename Function>
void ForEachPlane(const BlobDesc& src, const BlobDesc& dst, const Function& fn) {
  const int64_t src_floats = src.plane() * src.block, dst_floats = dst.plane() * dst.block;
  ForEachChannelBlock(src, [&](int64_t i) { fn(i * src_floats, i * dst_floats); });
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
  RequireF32(args.src);
  src_ = dst_ = args.src[0];
  dst_.H = geometry_.OH;
  dst_.W = geometry_.OW;
  training_ = args.training;
  const size_t winner_bytes = wide() ? sizeof(int32_t) : sizeof(uint8_t);
  return LayerPlan{.dst = dst_, .state_bytes = training_ ? dst_.elements() * winner_bytes : 0};
}

void MaxPoolLayer::Forward(const ForwardArgs& args) {
  const bool keep = training_ && args.step->training;
  if (wide()) {
    const auto kernel = RT_KERNEL(MaxPoolForwardWide);
    auto* winner = reinterpret_cast<int32_t*>(args.state);
    ForEachPlane(src_, dst_, [&](int64_t src, int64_t dst) {
      kernel(args.src[0] + src, geometry_, src_.block, args.dst + dst,
             keep ? winner + dst : nullptr);
    });
    return;
  }
  const auto kernel = RT_KERNEL(MaxPoolForward);
  auto* winner = reinterpret_cast<uint8_t*>(args.state);
  ForEachPlane(src_, dst_, [&](int64_t src, int64_t dst) {
    kernel(args.src[0] + src, geometry_, src_.block, args.dst + dst, keep ? winner + dst : nullptr);
  });
}

void MaxPoolLayer::Backward(const BackwardArgs& args) {
  if (args.diff_src[0] == nullptr) return;
  if (wide()) {
    const auto kernel = RT_KERNEL(MaxPoolBackwardWide);
    const auto* winner = reinterpret_cast<const int32_t*>(args.state);
    ForEachPlane(src_, dst_, [&](int64_t src, int64_t dst) {
      kernel(args.diff_dst + dst, winner + dst, geometry_, src_.block, args.diff_src[0] + src);
    });
    return;
  }
  const auto kernel = RT_KERNEL(MaxPoolBackward);
  const auto* winner = reinterpret_cast<const uint8_t*>(args.state);
  ForEachPlane(src_, dst_, [&](int64_t src, int64_t dst) {
    kernel(args.diff_dst + dst, winner + dst, geometry_, src_.block, args.diff_src[0] + src);
  });
}

std::string MaxPoolLayer::Implementation() const { return KernelImplementation(); }

}  // namespace ringtail
