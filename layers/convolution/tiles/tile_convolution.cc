#include "layers/convolution/tiles/tile_convolution.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/convolution/tiles/tile_problem.h"
#include "layers/convolution/work_division.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/bf16/bf16_tiles.h"
#include "layers/kernels/bf16/pointwise_bf16.h"

namespace ringtail {
namespace {

constexpr int64_t kBlock = kTileOutputs;  // channels of a block of the blobs
constexpr int64_t kPanelBlocks = 2;
// The share of a core's second-level cache that a packed strip may take, beside two blocks' weights;
// and how many pixels it should have at most, so that their sums stay near.
constexpr int64_t kStripBytes = 512 << 10;
constexpr int64_t kStripPixels = 1024;
// With fewer strips per thread, some threads would wait for others.
constexpr int64_t kMinStripsPerThread = 4;

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> TileConvolution::Create(const ConvolutionProblem& p,
                                                              ConvolutionDirection direction) {
  const bool is_data = direction == ConvolutionDirection::kForward ||
                       direction == ConvolutionDirection::kBackwardData;
  if (!is_data || !IsForTiles(p)) return nullptr;
  return std::make_unique<TileConvolution>(p, direction, BestBf16Unit());
}

TileConvolution::TileConvolution(const ConvolutionProblem& problem, ConvolutionDirection direction,
                                 Bf16Unit unit)
    : unit_(unit),
      kernels_(KernelsOf(unit)),
      forward_(direction == ConvolutionDirection::kForward),
      in_is_affine_(forward_ && problem.src_is_affine),
      activation_(forward_ ? problem.activation : Activation::kNone),
      in_(forward_ ? problem.src : problem.dst),
      out_(forward_ ? problem.dst : problem.src),
      window_(problem.window),
      plane_(forward_ ? ForwardPlane(window_, out_) : BackwardPlane(window_, out_)),
      channel_blocks_(CeilDivide(in_.C, kTileChannels)),
      panels_(CeilDivide(out_.channel_blocks(), kPanelBlocks)),
      threads_(NumComputeThreads()) {
  DivideIntoStrips();
  int64_t tiles = 0;
  for (const TileResults& results : plane_.results) {
    Phase phase{.results = &results, .taps = {}, .first_tile = tiles};
    for (const TilePlaneTap& tap : results.taps) {
      const int64_t pixel =
          tap.phase * plane_.Pixels(rows_) + tap.row * plane_.columns + tap.column;
      phase.taps.push_back(pixel * kTileChannels);
    }
    tiles += out_.channel_blocks() * channel_blocks_ * std::ssize(results.taps);
    phases_.push_back(std::move(phase));
  }
  weights_ = scratch_.Add<Bfloat16>(tiles * kTileNumbers);
  bias_ = scratch_.Add<float>(out_.channel_blocks() * kBlock);
  // The last tile of the last tap reads pixels beyond the plane.
  strips_at_ = scratch_.Add<Bfloat16>(threads_ * samples_ * ImageNumbers() +
                                      (kTilePixels + window_.KW) * kTileChannels);
  mapped_ = scratch_.Add<Bfloat16>(threads_ * MappedNumbers());
  sums_ = scratch_.Add<float>(threads_ * kPanelBlocks * SumFloats());
}

int64_t TileConvolution::ImageNumbers() const {
  return channel_blocks_ * plane_.phases() * plane_.Pixels(rows_) * kTileChannels;
}

int64_t TileConvolution::MappedNumbers() const {
  return in_is_affine_ ? 2 * plane_.columns * kBlock : 0;
}

int64_t TileConvolution::SumFloats() const {
  return RoundUp(rows_ * plane_.columns, kTilePixels) * kBlock;
}

// Rows of one image, or several images where these are small.
void TileConvolution::DivideIntoStrips() {
  const int64_t pixel_bytes =
      channel_blocks_ * plane_.phases() * kTileChannels * static_cast<int64_t>(sizeof(Bfloat16));
  const int64_t pixels =
      std::max(std::min(kStripBytes / pixel_bytes, kStripPixels), plane_.Pixels(1));
  rows_ = std::clamp<int64_t>(pixels / plane_.columns - plane_.more_rows, 1, plane_.result_rows);
  const int64_t pieces = CeilDivide(plane_.result_rows, rows_);
  rows_ = CeilDivide(plane_.result_rows, pieces);
  if (pieces == 1) {
    const int64_t fit = std::max<int64_t>(pixels / plane_.Pixels(rows_), 1);
    const int64_t share = std::max<int64_t>(in_.N / (threads_ * kMinStripsPerThread), 1);
    samples_ = std::min(fit, share);
  }
  strips_ = CeilDivide(in_.N, samples_) * pieces;
}

TileConvolution::Strip TileConvolution::StripOf(int64_t index) const {
  const int64_t pieces = CeilDivide(plane_.result_rows, rows_);
  const int64_t sample = index / pieces * samples_, row = index % pieces * rows_;
  return {.sample = sample,
          .samples = std::min(samples_, in_.N - sample),
          .row = row,
          .rows = std::min(rows_, plane_.result_rows - row)};
}

// Weight (k, c, ky, kx), where k counts channels of `out` and c those of `in`.
void TileConvolution::PackWeights(const float* weight, Bfloat16* to) const {
  const int64_t taps = window_.KH * window_.KW;
  const int64_t k_stride = forward_ ? in_.C * taps : taps,
                c_stride = forward_ ? taps : out_.C * taps;
  const int64_t out_blocks = out_.channel_blocks();
  ParallelFor(out_blocks * channel_blocks_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i / channel_blocks_ * kBlock, c = i % channel_blocks_ * kTileChannels;
      for (const Phase& phase : phases_) {
        const auto& own = phase.results->taps;
        for (size_t tap = 0; tap < own.size(); ++tap) {
          const int64_t tile = phase.first_tile + i * std::ssize(own) + static_cast<int64_t>(tap);
          RT_KERNEL(PackTileWeights, {.weight = weight + k * k_stride + c * c_stride +
                                                own[tap].ky * window_.KW + own[tap].kx,
                                      .k_stride = k_stride,
                                      .c_stride = c_stride,
                                      .outputs = std::min(kBlock, out_.C - k),
                                      .channels = std::min(kTileChannels, in_.C - c),
                                      .to = to + tile * kTileNumbers});
        }
      }
    }
  });
}

const float* TileConvolution::PackBias(const float* bias, float* to) const {
  if (bias == nullptr) return nullptr;
  std::copy_n(bias, out_.C, to);
  std::fill(to + out_.C, to + out_.channel_blocks() * kBlock, 0.0F);
  return to;
}

void TileConvolution::PackStrip(const ConvolutionTensors& t, const Strip& strip, Bfloat16* mapped,
                                Bfloat16* to) const {
  const auto* const in = ElementsOf<Bfloat16>(forward_ ? t.src : t.diff_dst);
  const int64_t row_numbers = plane_.columns * kTileChannels;
  const int64_t image = in_.channel_blocks() * in_.plane() * kBlock;
  for (int64_t i = 0; i < strip.samples; ++i) {
    for (int64_t block = 0; block < channel_blocks_; ++block) {
      for (int64_t phase = 0; phase < plane_.phases(); ++phase) {
        Bfloat16* const plane =
            to + i * ImageNumbers() +
            (block * plane_.phases() + phase) * plane_.Pixels(rows_) * kTileChannels;
        for (int64_t row = 0; row < strip.rows + plane_.more_rows; ++row) {
          PackRow(in + (strip.sample + i) * image, forward_ ? t.src_affine : ChannelAffine(), block,
                  RowOf(plane_, in_, phase, strip.row + row), mapped, plane + row * row_numbers);
        }
      }
    }
  }
}

// Two blocks of 16 channels of a row, with zeros beside the image.
void TileConvolution::PackRow(const Bfloat16* in, const ChannelAffine& affine, int64_t block,
                              const TileRow& place, Bfloat16* mapped, Bfloat16* to) const {
  const int64_t plane = in_.plane() * kBlock, pixels = place.end - place.begin;
  const Bfloat16* first = in + 2 * block * plane + (place.y * in_.W + place.x) * kBlock;
  const Bfloat16* second = 2 * block + 1 < in_.channel_blocks() ? first + plane : nullptr;
  int64_t step = plane_.stride_x * kBlock;
  if (!affine.is_identity() && pixels > 0) {
    const auto map = [&](const Bfloat16* from, int64_t half, Bfloat16* copy) {
      RT_KERNEL(CopyTilePixels, from, step, pixels, copy);
      RT_KERNEL(MapBf16Pixels, copy, pixels, affine.From((2 * block + half) * kBlock), copy);
      return copy;
    };
    first = map(first, 0, mapped);
    if (second != nullptr) second = map(second, 1, mapped + pixels * kBlock);
    step = kBlock;
  }
  RT_KERNEL(ZeroTilePixels, place.begin, to);
  RT_KERNEL(PackTilePixels, first, second, step, pixels, to + place.begin * kTileChannels);
  RT_KERNEL(ZeroTilePixels, plane_.columns - place.end, to + place.end * kTileChannels);
}

void TileConvolution::MultiplyStrip(const ConvolutionTensors& t, const Strip& strip,
                                    const Range& panels, const float* bias, const Bfloat16* packed,
                                    float* sums) const {
  const auto* weights = ArrayAt<Bfloat16>(t.scratch, weights_);
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const int64_t block = panel * kPanelBlocks;
    const int64_t blocks = std::min(kPanelBlocks, out_.channel_blocks() - block);
    for (const Phase& phase : phases_) {
      const auto taps = std::ssize(phase.taps);
      const int64_t rows = std::min(strip.rows, phase.results->rows - strip.row);
      if (rows <= 0) continue;
      for (int64_t i = 0; i < strip.samples; ++i) {
        kernels_.multiply(
            {.in = packed + i * ImageNumbers(),
             .pixel_step = kTileChannels,
             .in_block_stride = plane_.phases() * plane_.Pixels(rows_) * kTileChannels,
             .channel_blocks = channel_blocks_,
             .taps = phase.taps.data(),
             .tap_count = taps,
             .weight = weights + (phase.first_tile + block * channel_blocks_ * taps) * kTileNumbers,
             .out_blocks = static_cast<int>(blocks),
             .pixels = rows * plane_.columns,
             .out = sums,
             .out_block_stride = SumFloats()});
        for (int64_t j = 0; j < blocks; ++j) {
          FinishStrip(t, strip, phase, strip.sample + i, block + j, bias, sums + j * SumFloats());
        }
      }
    }
  }
}

void TileConvolution::FinishStrip(const ConvolutionTensors& t, const Strip& strip,
                                  const Phase& phase, int64_t sample, int64_t block,
                                  const float* bias, const float* sums) const {
  const TileResults& results = *phase.results;
  auto* const out = ElementsOf<Bfloat16>(forward_ ? t.dst : t.diff_src);
  const int64_t y = results.first_y + strip.row * plane_.result_stride_y;
  const int64_t row = (sample * out_.channel_blocks() + block) * out_.H + y;
  Bfloat16* const to = out + (row * out_.W + results.first_x) * kBlock;
  const BlobParts& parts =
      forward_ ? static_cast<const BlobParts&>(t.dst_moments) : t.diff_src_sums;
  const bool takes = t.dst_moments || t.diff_src_sums;
  const int64_t at = takes ? parts.At(out_, sample, strip.row / rows_, block) : 0;
  Bf16TileRows finish = {.from = sums,
                         .from_row_stride = plane_.columns * kBlock,
                         .to = to,
                         .to_row_stride = plane_.result_stride_y * out_.W * kBlock,
                         .to_pixel_stride = plane_.result_stride_x * kBlock,
                         .rows = std::min(strip.rows, results.rows - strip.row),
                         .columns = results.columns,
                         .bias = bias != nullptr ? bias + block * kBlock : nullptr,
                         .add = t.add_to_diff_src,
                         .clamp = activation_ != Activation::kNone,
                         .low = LowerBound(activation_),
                         .high = UpperBound(activation_),
                         .mean = t.dst_moments ? t.dst_moments.mean + at : nullptr,
                         .m2 = t.dst_moments ? t.dst_moments.m2 + at : nullptr,
                         .sums = {}};
  if (t.diff_src_sums) {
    finish.sums = {.src = ElementsOf<Bfloat16>(t.src) + (to - out),
                   .affine = t.src_affine.From(block * kBlock),
                   .g = t.diff_src_sums.g + at,
                   .gx = t.diff_src_sums.gx + at};
  }
  RT_KERNEL(FinishTileRows, finish);
}

void TileConvolution::Run(const ConvolutionTensors& t) {
  PackWeights(t.weight, ArrayAt<Bfloat16>(t.scratch, weights_));
  const float* const bias = PackBias(forward_ ? t.bias : nullptr, ArrayAt<float>(t.scratch, bias_));
  const bool by_panel = strips_ % threads_ != 0 && strips_ < threads_ * kMinStripsPerThread;
  ForEachThread(threads_, [&](int64_t thread) {
    const auto part = [&](int64_t n) {
      return Range{n * thread / threads_, n * (thread + 1) / threads_};
    };
    const Range panels = by_panel ? part(panels_) : Range{0, panels_};
    const Range mine = by_panel ? Range{0, strips_} : part(strips_);
    Bfloat16* const packed =
        ArrayAt<Bfloat16>(t.scratch, strips_at_) + thread * samples_ * ImageNumbers();
    float* const sums = ArrayAt<float>(t.scratch, sums_) + thread * kPanelBlocks * SumFloats();
    Bfloat16* const mapped = ArrayAt<Bfloat16>(t.scratch, mapped_) + thread * MappedNumbers();
    kernels_.begin();
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const Strip strip = StripOf(i);
      PackStrip(t, strip, mapped, packed);
      MultiplyStrip(t, strip, panels, bias, packed, sums);
    }
    kernels_.end();
  });
}

}  // namespace ringtail
