#include "layers/lrn.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/lrn.h"
#include "layers/relayout.h"
#include "layers/scratch_layout.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

constexpr int64_t kTilesPerPart = 3;  // src, ratio, and dst or diff

}  // namespace

LrnLayer::LrnLayer(const LrnConfig& config) : config_(config) {}

StatusOr<ShapeInfo> LrnLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  const LrnConfig& c = config_;
  if (c.size() < 1 || c.size() % 2 == 0) {
    return fields().Error("size",
                          fmt::format("size is {}; it must be odd and at least 1", c.size()));
  }
  RT_RETURN_IF_ERROR(fields().NotNegative("alpha", c.alpha()));
  RT_RETURN_IF_ERROR(fields().NotNegative("beta", c.beta()));
  RT_RETURN_IF_ERROR(fields().Positive("k", c.k()));
  return ShapeInfo{.dst = src[0], .parameters = {}};
}

StatusOr<LayerPlan> LrnLayer::Setup(const SetupArgs& args) {
  desc_ = args.src[0];
  parts_ = NumComputeThreads();
  ScratchLayout scratch;
  scratch.Add<float>(parts_ * kTilesPerPart * tile_elements());
  return LayerPlan{.dst = desc_,
                   .scratch_bytes = scratch.bytes(),
                   .backward_needs_src = true,
                   .forward_in_place = !args.training,  // Backward needs src as it was
                   .backward_in_place = true};
}

LrnShape LrnLayer::Shape() const {
  // Channels further away than C do not exist: the window ends there.
  const int64_t half = std::min<int64_t>(config_.size() / 2, desc_.C - 1);
  return {desc_.C, half, config_.alpha() / static_cast<float>(config_.size()), config_.beta(),
          config_.k()};
}

int64_t LrnLayer::tile_elements() const {
  const LrnShape shape = Shape();
  return (shape.channels + 2 * shape.half) * kLrnTile;
}

template <typename Run>
void LrnLayer::ForEachTile(std::byte* scratch, const Run& run) const {
  const int64_t tiles_per_sample = CeilDivide(desc_.plane(), kLrnTile);
  const int64_t tiles = desc_.N * tiles_per_sample, sample_elements = desc_.elements() / desc_.N;
  const int64_t part_elements = kTilesPerPart * tile_elements();
  ParallelFor(parts_, 1, [&](int64_t first_part, int64_t last_part) {
    for (int64_t part = first_part; part < last_part; ++part) {
      float* part_scratch = reinterpret_cast<float*>(scratch) + part * part_elements;
      std::fill_n(part_scratch, part_elements, 0.0F);
      for (int64_t i = tiles * part / parts_; i < tiles * (part + 1) / parts_; ++i) {
        const int64_t position = i % tiles_per_sample * kLrnTile;
        const int64_t offset = i / tiles_per_sample * sample_elements + position * desc_.block;
        run(part_scratch, offset, std::min(kLrnTile, desc_.plane() - position));
      }
    }
  });
}

void LrnLayer::Forward(const ForwardArgs& args) {
  // The padding channels are written when dst is not src; the tiles cover the real ones alone.
  if (args.dst != args.src[0]) ZeroPaddingChannels(desc_, args.dst);
  ForElementOf(desc_.type, [&](auto element) { ForwardOn<decltype(element)>(args); });
}

template <typename Element>
void LrnLayer::ForwardOn(const ForwardArgs& args) {
  const LrnShape shape = Shape();
  const int64_t edge = shape.half * kLrnTile, tile = tile_elements();
  const Element* from = ElementsOf<Element>(args.src[0]);
  Element* to = ElementsOf<Element>(args.dst);
  ForEachTile(args.scratch, [&](float* tiles, int64_t offset, int64_t positions) {
    float *src = tiles + edge, *dst = src + tile;
    RT_KERNEL(LoadLrnTile<Element>, from + offset, desc_.C, desc_.block, desc_.plane(), positions,
              src);
    RT_KERNEL(LrnForwardTile, shape, src, dst);
    RT_KERNEL(StoreLrnTile<Element>, dst, desc_.C, desc_.block, desc_.plane(), positions,
              to + offset);
  });
}

void LrnLayer::Backward(const BackwardArgs& args) {
  if (args.diff_src[0] == nullptr) return;
  if (args.diff_src[0] != args.diff_dst) ZeroPaddingChannels(desc_, args.diff_src[0]);
  ForElementOf(desc_.type, [&](auto element) { BackwardOn<decltype(element)>(args); });
}

template <typename Element>
void LrnLayer::BackwardOn(const BackwardArgs& args) {
  const LrnShape shape = Shape();
  const int64_t edge = shape.half * kLrnTile, tile = tile_elements();
  const Element *from = ElementsOf<Element>(args.src[0]),
                *diff_dst = ElementsOf<Element>(args.diff_dst);
  Element* diff_src = ElementsOf<Element>(args.diff_src[0]);
  ForEachTile(args.scratch, [&](float* tiles, int64_t offset, int64_t positions) {
    float *src = tiles + edge, *ratio = src + tile, *diff = ratio + tile;
    const auto load = [&](const Element* blob, float* rows) {
      RT_KERNEL(LoadLrnTile<Element>, blob + offset, desc_.C, desc_.block, desc_.plane(), positions,
                rows);
    };
    load(from, src);
    load(diff_dst, diff);
    RT_KERNEL(LrnBackwardTile, shape, src, ratio, diff);
    RT_KERNEL(StoreLrnTile<Element>, diff, desc_.C, desc_.block, desc_.plane(), positions,
              diff_src + offset);
  });
}

}  // namespace ringtail
