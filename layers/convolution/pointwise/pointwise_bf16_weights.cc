#include "layers/convolution/pointwise/pointwise_bf16_weights.h"

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/convolution/pointwise/pointwise_bf16_problem.h"
#include "layers/convolution/work_division.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/bf16/bf16_products.h"

namespace ringtail {
namespace {

// A block of rows and three of columns of so many pixels fit the first-level cache; a tile of sums
// and its operands' runs the second-level cache.
constexpr int64_t kRunPixels = 256;
constexpr int64_t kTileRows = 256, kTileColumns = 288;

// Interleaves the blocks of a run, or their map, each without gaps; returns the numbers of one block.
int64_t Interleave(const PixelBlocks& blocks, const float* blob, const ChannelAffine& affine,
                   Bfloat16* to) {
  const auto* from = ElementsOf<Bfloat16>(blob);
  const int64_t piece = RoundUp(blocks.run.pixels, 2) * kBf16ProductLanes;
  for (int64_t b = 0; b < blocks.blocks; ++b) {
    for (int64_t i = 0; i < blocks.run.pieces; ++i) {
      const Bfloat16* pixels = from + blocks.Offset(b, i);
      Bfloat16* const pairs = to + (b * blocks.run.pieces + i) * piece;
      if (affine.is_identity()) {
        RT_KERNEL(InterleaveBf16Pixels, pixels, blocks.run.pixels, pairs);
      } else {
        RT_KERNEL(InterleaveMappedBf16Pixels, pixels, blocks.run.pixels,
                  affine.From((blocks.first_block + b) * kBf16ProductLanes), pairs);
      }
    }
  }
  return blocks.run.pieces * piece;
}

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> PointwiseBf16Weights::Create(const ConvolutionProblem& p,
                                                                   ConvolutionDirection direction) {
  const bool full = p.src.C % kBf16ProductLanes == 0 && p.dst.C % kBf16ProductLanes == 0;
  if (direction != ConvolutionDirection::kBackwardWeights || p.bias || !full ||
      !IsPointwiseBf16(p)) {
    return nullptr;
  }
  return std::make_unique<PointwiseBf16Weights>(p);
}

PointwiseBf16Weights::PointwiseBf16Weights(const ConvolutionProblem& problem)
    : sums_(problem, kTileRows, kTileColumns),
      pieces_(problem.dst.N, problem.dst.plane(), kRunPixels, /*group=*/2),
      threads_(NumComputeThreads()),
      buffer_size_(pieces_.run_pixels() / pieces_.piece_pixels() *
                   RoundUp(pieces_.piece_pixels(), 2) *
                   (sums_.SrcTileChannels() + sums_.DstTileChannels())),
      sums_at_(scratch_.Add<float>(sums_.floats())),
      buffers_at_(scratch_.Add<Bfloat16>(threads_ * buffer_size_)) {}

// The sum of one tile over the samples of one slot.
void PointwiseBf16Weights::SumTile(const ConvolutionTensors& t, int64_t slot, int64_t tile,
                                   Bfloat16* buffer, float* sums) const {
  const int64_t pieces = pieces_.count(), slots = sums_.slots();
  bool first = true;
  const auto add = [&](const PixelPieces::Run& run, const PixelPieces::Run&) {
    const PixelBlocks src = sums_.SrcBlocks(run, tile), dst = sums_.DstBlocks(run, tile);
    const int64_t block_size = Interleave(src, t.src, t.src_affine, buffer);
    Bfloat16* const diff_dst = buffer + src.blocks * block_size;
    Interleave(dst, t.diff_dst, ChannelAffine(), diff_dst);
    sums_.AddBf16({.src = buffer, .diff_dst = diff_dst, .block_size = block_size}, slot, tile,
                  first, sums);
    first = false;
  };
  pieces_.ForEachRun(pieces * slot / slots, pieces * (slot + 1) / slots, add);
}

void PointwiseBf16Weights::Run(const ConvolutionTensors& tensors) {
  const int64_t tiles = sums_.tiles(), items = sums_.slots() * tiles;
  float* sums = ArrayAt<float>(tensors.scratch, sums_at_);
  auto* buffers = ArrayAt<Bfloat16>(tensors.scratch, buffers_at_);
  ForEachThread(threads_, [&](int64_t t) {
    for (int64_t i = items * t / threads_; i < items * (t + 1) / threads_; ++i) {
      SumTile(tensors, i / tiles, i % tiles, buffers + t * buffer_size_, sums);
    }
  });
  ParallelFor(tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sums_.Write(i, sums, tensors.diff_weight);
  });
}

}  // namespace ringtail
