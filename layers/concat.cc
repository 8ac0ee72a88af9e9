#include "layers/concat.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/parallel_for.h"
#include "core/round.h"
#include "core/text/counted.h"
#include "layers/net.pb.h"
#include "layers/relayout.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

// Consecutive channels of a blob.
template <typename Pointer>
struct Channels {
  BlobDesc desc;
  int64_t first;
  Pointer data;

  // The first element of `channel` (counted from `first`) of sample n;
  // the next position is block further.
  Pointer Plane(int64_t n, int64_t channel) const {
    const int64_t c = first + channel;
    const int64_t block_index = n * desc.channel_blocks() + c / desc.block;
    return data + block_index * desc.plane() * desc.block + c % desc.block;
  }
};

// Copies `count` channels; padding channels only with whole blocks.
void CopyChannels(const Channels<const float*>& from, const Channels<float*>& to, int64_t count) {
  const int64_t block = from.desc.block, plane = from.desc.plane();
  const bool whole_blocks =
      block == to.desc.block && from.first % block == 0 && to.first % block == 0;
  const int64_t step = whole_blocks ? block : 1;
  const int64_t pieces = CeilDivide(count, step);
  ParallelFor(from.desc.N * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / pieces, channel = i % pieces * step;
      const float* src = from.Plane(n, channel);
      float* dst = to.Plane(n, channel);
      if (whole_blocks) {
        std::memcpy(dst, src, static_cast<size_t>(plane * block) * sizeof(float));
        continue;
      }
      for (int64_t p = 0; p < plane; ++p) dst[p * to.desc.block] = src[p * block];
    }
  });
}

}  // namespace

ConcatLayer::ConcatLayer(const ConcatConfig&) {}

StatusOr<ShapeInfo> ConcatLayer::InferShape(std::span<const BlobDesc> src) {
  if (src.size() < 2) {
    return InvalidArgument(
        fmt::format("it has {}; it takes two or more", Counted(src.size(), "input")));
  }
  ShapeInfo info;
  info.dst = src[0];
  for (size_t i = 1; i < src.size(); ++i) {
    if (src[i].N != src[0].N || src[i].H != src[0].H || src[i].W != src[0].W) {
      return InvalidArgument(fmt::format("input {} is {}, but input 0 is {}: all but C must agree",
                                         i, src[i].ShapeString(), src[0].ShapeString()));
    }
    info.dst.C += src[i].C;
    RT_RETURN_IF_ERROR(CheckBlobSize(info.dst));
  }
  return info;
}

StatusOr<LayerPlan> ConcatLayer::Setup(const SetupArgs& args) {
  RequireF32(args.src);
  src_.assign(args.src.begin(), args.src.end());
  first_channel_.clear();
  dst_ = src_[0];
  dst_.C = 0;
  for (const BlobDesc& src : src_) {
    first_channel_.push_back(dst_.C);
    dst_.C += src.C;
    dst_.block = std::max(dst_.block, src.block);
  }
  return LayerPlan{.dst = dst_};
}

void ConcatLayer::Forward(const ForwardArgs& args) {
  ZeroPaddingChannels(dst_, args.dst);
  for (size_t i = 0; i < src_.size(); ++i) {
    CopyChannels({src_[i], 0, args.src[i]}, {dst_, first_channel_[i], args.dst}, src_[i].C);
  }
}

void ConcatLayer::Backward(const BackwardArgs& args) {
  for (size_t i = 0; i < src_.size(); ++i) {
    if (args.diff_src[i] == nullptr) continue;
    CopyChannels({dst_, first_channel_[i], args.diff_dst}, {src_[i], 0, args.diff_src[i]},
                 src_[i].C);
    ZeroPaddingChannels(src_[i], args.diff_src[i]);
  }
}

}  // namespace ringtail
