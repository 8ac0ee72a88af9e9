#include "layers/linear/bf16_products.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/bf16/bf16_tiles.h"
#include "layers/kernels/linear/linear.h"
#include "layers/kernels/linear/linear_bf16.h"
#include "layers/linear/product_parts.h"
#include "layers/parallel_blobs.h"
#include "layers/scratch_layout.h"

namespace ringtail {
namespace {

constexpr int64_t kBlock = kTileOutputs;   // rows or columns of a tile
constexpr int64_t kGroup = kTileChannels;  // numbers that are multiplied together
constexpr int64_t kTileFloats = kBlock * kBlock;
constexpr int64_t kUnit = 2 * kBlock;  // rows or columns whose sums are in registers together

constexpr int64_t kDepth = 512;      // inputs of weights, forward
constexpr int64_t kDataDepth = 256;  // outputs of weights, backward-data
constexpr int64_t kMostPanelRows = 128, kMostStrip = 512;
constexpr int64_t kMostSumFloats = 1 << 16;     // 256 KiB
constexpr int64_t kMostStripNumbers = 1 << 17;  // 256 KiB

// Rows a multiple of 4 KiB apart would share a few sets of the caches; a line more, and they do not.
constexpr int64_t Apart(int64_t numbers) { return numbers + kGroup; }

// As many whole units as fit, at least one.
constexpr int64_t Units(int64_t fit, int64_t most) {
  return std::clamp(fit / kUnit * kUnit, kUnit, most);
}

constexpr int64_t Blocks(int64_t n) { return CeilDivide(n, kBlock); }

}  // namespace

Bf16LinearProducts::Bf16LinearProducts(const LinearSizes& sizes, BlobType rows, Bf16Unit unit)
    : N_(sizes.N),
      K_(sizes.K),
      M_(sizes.M),
      rows_(rows),
      unit_(unit),
      threads_(NumComputeThreads()),
      kernels_(KernelsOf(unit)),
      sample_blocks_(Blocks(N_)),
      input_numbers_(RoundUp(K_, kGroup)),
      output_numbers_(RoundUp(M_, kGroup)),
      sample_numbers_(RoundUp(N_, kGroup)),
      data_stride_(Apart(output_numbers_)),
      weights_stride_(Apart(sample_numbers_)) {
  const int64_t samples = sample_blocks_ * kBlock;
  panel_rows_ = Units(kMostSumFloats / samples, kMostPanelRows);
  data_strip_ = Units(kMostSumFloats / samples, kMostStrip);
  weights_strip_ = Units(kMostStripNumbers / sample_numbers_, kMostStrip);
  ScratchLayout layout;
  operand_ = layout.Add<Bfloat16>(std::max(
      {samples * input_numbers_, samples * data_stride_, Blocks(M_) * kBlock * weights_stride_}));
  buffer_numbers_ =
      std::max({kUnit * Apart(kDepth), Blocks(data_strip_) * Apart(kDataDepth * kBlock),
                Blocks(weights_strip_) * Apart(sample_numbers_ * kBlock)});
  sum_floats_ = std::max({panel_rows_ * samples, samples * data_strip_, kUnit * weights_strip_});
  buffers_ = layout.Add<Bfloat16>(threads_ * buffer_numbers_);
  sums_ = layout.Add<float>(threads_ * sum_floats_);
  scratch_bytes_ = layout.bytes();
}

std::string Bf16LinearProducts::name() const {
  return unit_ == Bf16Unit::kTiles ? "tiles bf16" : "pairs bf16";
}

Bf16LinearProducts::Buffers Bf16LinearProducts::BuffersOf(std::byte* scratch, int64_t part) const {
  return {ArrayAt<Bfloat16>(scratch, buffers_) + part * buffer_numbers_,
          ArrayAt<float>(scratch, sums_) + part * sum_floats_};
}

template <typename Function>
void Bf16LinearProducts::ForEachPartOf(int64_t count, std::byte* scratch,
                                       const Function& fn) const {
  ForEachPart(threads_, count, kUnit, N_ * K_ * M_ / count,
              [&](int64_t part, int64_t begin, int64_t end) {
                kernels_.begin();
                fn(begin, end, BuffersOf(scratch, part));
                kernels_.end();
              });
}

void Bf16LinearProducts::Multiply(const Product& p) const {
  const int64_t row_sums = p.column_blocks * kTileFloats;
  for (int64_t j = 0; j < p.column_blocks; j += 2) {
    for (int64_t i = 0; i < p.row_blocks; i += 2) {
      kernels_.multiply_gradient(
          {.rows = p.rows + i * kBlock * p.row_stride,
           .rows_block_stride = kBlock * p.row_stride,
           .row_stride = p.row_stride,
           .columns = p.columns + j * p.column_block_stride,
           .columns_block_stride = p.column_block_stride,
           .row_blocks = static_cast<int>(std::min<int64_t>(2, p.row_blocks - i)),
           .column_blocks = static_cast<int>(std::min<int64_t>(2, p.column_blocks - j)),
           .groups = p.numbers / kGroup,
           .sums = p.sums + i * row_sums + j * kTileFloats,
           .sums_row_stride = row_sums,
           .sums_column_stride = kTileFloats,
           .accumulate = p.accumulate});
    }
  }
}

// src (N, K) as columns: [block of samples][input_numbers_ x 16].
template <typename Element>
void Bf16LinearProducts::PackSrc(const Element* src, Bfloat16* to) const {
  const int64_t pieces = CeilDivide(K_, kDepth);
  ParallelFor(sample_blocks_ * pieces, Grain(kBlock * kDepth), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / pieces * kBlock, k = i % pieces * kDepth;
      RT_KERNEL(PackRowsAsColumns<Element>,
                {src + n * K_ + k, K_, std::min(kBlock, N_ - n), std::min(kDepth, K_ - k)},
                to + (n * input_numbers_ + k * kBlock));
    }
  });
}

// dst^T (M, N) = weight src^T, panel by panel of the weight's rows.
template <typename Element>
void Bf16LinearProducts::ForwardOn(const Element* src, const Weights& weights,
                                   Activation activation, Element* dst, std::byte* scratch) const {
  Bfloat16* const columns = ArrayAt<Bfloat16>(scratch, operand_);
  PackSrc(src, columns);
  const float low = LowerBound(activation), high = UpperBound(activation);
  const int64_t row_sums = sample_blocks_ * kTileFloats;
  const auto multiply_rows = [&](int64_t m, int64_t rows, int64_t k, const Buffers& buffers,
                                 float* sums) {
    const int64_t depth = std::min(kDepth, K_ - k), blocks = Blocks(rows);
    RT_KERNEL(PackRows<float>, {weights.weight + m * K_ + k, K_, rows, depth}, blocks * kBlock,
              RoundUp(depth, kGroup), Apart(kDepth), buffers.operand);
    Multiply({.rows = buffers.operand,
              .row_stride = Apart(kDepth),
              .columns = columns + k * kBlock,
              .column_block_stride = input_numbers_ * kBlock,
              .row_blocks = blocks,
              .column_blocks = sample_blocks_,
              .numbers = RoundUp(depth, kGroup),
              .sums = sums,
              .accumulate = k > 0});
  };
  ForEachPartOf(M_, scratch, [&](int64_t begin, int64_t end, const Buffers& buffers) {
    for (int64_t m = begin; m < end; m += panel_rows_) {
      const int64_t rows = std::min(panel_rows_, end - m);
      for (int64_t k = 0; k < K_; k += kDepth) {
        for (int64_t r = 0; r < rows; r += kUnit) {
          multiply_rows(m + r, std::min(kUnit, rows - r), k, buffers,
                        buffers.sums + r / kBlock * row_sums);
        }
      }
      for (int64_t r = 0; r < rows; r += kBlock) {
        RT_KERNEL(StoreTransposedTiles<Element>,
                  {.sums = buffers.sums + r / kBlock * row_sums,
                   .bias = weights.bias != nullptr ? weights.bias + m + r : nullptr,
                   .low = low,
                   .high = high},
                  {dst + m + r, M_, N_, std::min(kBlock, rows - r)});
      }
    }
  });
}

// diff_weight (M, K) = diff_dst^T src, strip by strip of its columns.
template <typename Element>
void Bf16LinearProducts::WeightsOn(const Element* src, const Element* diff_dst, float* diff_weight,
                                   std::byte* scratch) const {
  Bfloat16* const rows = ArrayAt<Bfloat16>(scratch, operand_);
  ParallelFor(Blocks(M_), Grain(kBlock * N_), [&](int64_t begin, int64_t end) {
    const int64_t m = begin * kBlock;
    RT_KERNEL(PackColumnsAsRows<Element>, {diff_dst + m, M_, N_, std::min(end * kBlock, M_) - m},
              sample_numbers_, weights_stride_, rows + m * weights_stride_);
  });
  const bool stream = StreamsGradient(diff_weight, M_, K_);
  const int64_t block_stride = Apart(sample_numbers_ * kBlock);
  ForEachPartOf(K_, scratch, [&](int64_t begin, int64_t end, const Buffers& buffers) {
    for (int64_t k = begin; k < end; k += weights_strip_) {
      const int64_t inputs = std::min(weights_strip_, end - k), blocks = Blocks(inputs);
      RT_KERNEL(PackColumns<Element>, {src + k, K_, N_, inputs}, sample_numbers_, block_stride,
                buffers.operand);
      for (int64_t m = 0; m < M_; m += kUnit) {
        const int64_t outputs = std::min(kUnit, M_ - m);
        Multiply({.rows = rows + m * weights_stride_,
                  .row_stride = weights_stride_,
                  .columns = buffers.operand,
                  .column_block_stride = block_stride,
                  .row_blocks = Blocks(outputs),
                  .column_blocks = blocks,
                  .numbers = sample_numbers_,
                  .sums = buffers.sums,
                  .accumulate = false});
        for (int64_t r = 0; r < outputs; r += kBlock) {
          RT_KERNEL(StoreTiles<float>, buffers.sums + r * blocks * kBlock, stream,
                    {diff_weight + (m + r) * K_ + k, K_, std::min(kBlock, outputs - r), inputs});
        }
      }
    }
    // Streamed stores are ordered by nothing else, and other threads will read them.
    if (stream) RT_KERNEL(FinishTileStreams)();
  });
}

// diff_src (N, K) = diff_dst weight, strip by strip of the weight's columns.
template <typename Element>
void Bf16LinearProducts::DataOn(const Element* diff_dst, const float* weight, Element* diff_src,
                                std::byte* scratch) const {
  Bfloat16* const rows = ArrayAt<Bfloat16>(scratch, operand_);
  ParallelFor(sample_blocks_ * kBlock, Grain(M_), [&](int64_t begin, int64_t end) {
    RT_KERNEL(PackRows<Element>, {diff_dst + begin * M_, M_, std::min(end, N_) - begin, M_},
              end - begin, output_numbers_, data_stride_, rows + begin * data_stride_);
  });
  constexpr int64_t kBlockStride = Apart(kDataDepth * kBlock);
  ForEachPartOf(K_, scratch, [&](int64_t begin, int64_t end, const Buffers& buffers) {
    for (int64_t k = begin; k < end; k += data_strip_) {
      const int64_t inputs = std::min(data_strip_, end - k), blocks = Blocks(inputs);
      for (int64_t m = 0; m < M_; m += kDataDepth) {
        const int64_t outputs = std::min(kDataDepth, M_ - m);
        RT_KERNEL(PackColumns<float>, {weight + m * K_ + k, K_, outputs, inputs},
                  RoundUp(outputs, kGroup), kBlockStride, buffers.operand);
        Multiply({.rows = rows + m,
                  .row_stride = data_stride_,
                  .columns = buffers.operand,
                  .column_block_stride = kBlockStride,
                  .row_blocks = sample_blocks_,
                  .column_blocks = blocks,
                  .numbers = RoundUp(outputs, kGroup),
                  .sums = buffers.sums,
                  .accumulate = m > 0});
      }
      for (int64_t n = 0; n < N_; n += kBlock) {
        RT_KERNEL(StoreTiles<Element>, buffers.sums + n * blocks * kBlock, false,
                  {diff_src + n * K_ + k, K_, std::min(kBlock, N_ - n), inputs});
      }
    }
  });
}

void Bf16LinearProducts::Forward(const float* src, const Weights& weights, Activation activation,
                                 float* dst, std::byte* scratch) const {
  ForElementOf(rows_, [&](auto element) {
    using Element = decltype(element);
    ForwardOn(ElementsOf<Element>(src), weights, activation, ElementsOf<Element>(dst), scratch);
  });
}

void Bf16LinearProducts::BackwardWeights(const float* src, const float* diff_dst,
                                         float* diff_weight, std::byte* scratch) const {
  ForElementOf(rows_, [&](auto element) {
    using Element = decltype(element);
    WeightsOn(ElementsOf<Element>(src), ElementsOf<Element>(diff_dst), diff_weight, scratch);
  });
}

void Bf16LinearProducts::BackwardBias(const float* diff_dst, float* diff_bias) const {
  ForElementOf(rows_, [&](auto element) {
    using Element = decltype(element);
    const Element* const diff = ElementsOf<Element>(diff_dst);
    ParallelFor(M_, Grain(N_), [&](int64_t begin, int64_t end) {
      RT_KERNEL(SumRows<Element>, diff + begin, M_, N_, end - begin, diff_bias + begin);
    });
  });
}

void Bf16LinearProducts::BackwardData(const float* diff_dst, const float* weight, float* diff_src,
                                      std::byte* scratch) const {
  ForElementOf(rows_, [&](auto element) {
    using Element = decltype(element);
    DataOn(ElementsOf<Element>(diff_dst), weight, ElementsOf<Element>(diff_src), scratch);
  });
}

}  // namespace ringtail
