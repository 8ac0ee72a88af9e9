#include "layers/convolution/pointwise/pointwise_weights.h"

#include "core/parallel_for.h"
#include "layers/convolution/work_division.h"
#include "layers/kernels/pointwise.h"

namespace ringtail {
namespace {

// One block of rows and three of columns of so many pixels fit the first-level cache.
constexpr int64_t kRunPixels = 400;
constexpr int64_t kMappedRunPixels = 200;  // with a copy of src beside them
// A tile of sums and its operands' runs fit the second-level cache.
constexpr int64_t kTileRows = 256, kTileColumns = 288;

}  // namespace

PointwiseWeights::PointwiseWeights(const ConvolutionProblem& problem)
    : dst_(problem.dst),
      bias_(problem.bias),
      sums_(problem, kTileRows, kTileColumns),
      pieces_(dst_.N, dst_.plane(), problem.src_is_affine ? kMappedRunPixels : kRunPixels, 1),
      threads_(NumComputeThreads()),
      buffer_floats_(problem.src_is_affine ? pieces_.run_pixels() * sums_.SrcTileChannels() : 0),
      sums_at_(scratch_.Add<float>(sums_.floats())),
      buffers_at_(scratch_.Add<float>(threads_ * buffer_floats_)),
      bias_at_(scratch_.Add<float>(bias_ ? dst_.N * dst_.channel_blocks() * dst_.block : 0)) {}

// The sum of one tile over the samples of one slot.
void PointwiseWeights::SumTile(const ConvolutionTensors& t, int64_t slot, int64_t tile,
                               float* buffer, float* sums) const {
  const int64_t pieces = pieces_.count(), slots = sums_.slots();
  bool first = true;
  const auto add = [&](const PixelPieces::Run& run, const PixelPieces::Run& next) {
    const PixelView src = View(sums_.SrcBlocks(run, tile), t.src, t.src_affine, buffer);
    const PixelView next_src = View(sums_.SrcBlocks(next, tile), t.src);
    sums_.Add({.run = run,
               .src = src,
               .diff_dst = View(sums_.DstBlocks(run, tile), t.diff_dst),
               .fetch_src = t.src_affine.is_identity() ? PixelView{} : next_src},
              slot, tile, first, sums);
    first = false;
  };
  pieces_.ForEachRun(pieces * slot / slots, pieces * (slot + 1) / slots, add);
}

void PointwiseWeights::SumBias(const float* diff_dst, float* sums, float* diff_bias) const {
  const int64_t blocks = dst_.channel_blocks(), lanes = dst_.block;
  ParallelFor(dst_.N * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      RT_KERNEL(PointwiseSumPixels, diff_dst + i * dst_.plane() * lanes, dst_.plane(),
                sums + i * lanes);
    }
  });
  for (int64_t c = 0; c < dst_.C; ++c) {
    double total = 0;
    for (int64_t n = 0; n < dst_.N; ++n) total += sums[n * blocks * lanes + c];
    diff_bias[c] = static_cast<float>(total);
  }
}

void PointwiseWeights::Run(const ConvolutionTensors& tensors) {
  const int64_t tiles = sums_.tiles(), items = sums_.slots() * tiles;
  float* sums = ArrayAt<float>(tensors.scratch, sums_at_);
  float* buffers = ArrayAt<float>(tensors.scratch, buffers_at_);
  ForEachThread(threads_, [&](int64_t t) {
    for (int64_t i = items * t / threads_; i < items * (t + 1) / threads_; ++i) {
      SumTile(tensors, i / tiles, i % tiles, buffers + t * buffer_floats_, sums);
      if (sums_.slots() == 1) sums_.Write(i, sums, tensors.diff_weight);  // it is in the cache
    }
  });
  if (sums_.slots() > 1) {
    ParallelFor(tiles, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sums_.Write(i, sums, tensors.diff_weight);
    });
  }
  if (bias_)
    SumBias(tensors.diff_dst, ArrayAt<float>(tensors.scratch, bias_at_), tensors.diff_bias);
}

}  // namespace ringtail
