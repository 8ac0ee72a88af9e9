// The gradient of the weights (and bias) of a convolution on bf16 blobs, with products by tiles
// (AMX; kernels/bf16/bf16_tiles.h) or, where there are none, of pairs (vdpbf16ps;
// bf16_dot_tiles.h). Any window without dilation, any stride; one group.
//
//   diff_weight[k][c][tap] = sum over pixels of diff_dst[pixel][k] src[pixel + tap][c]
//
// A product by tiles sums along the rows of one operand and the columns of the other: so src is
// transposed, [channel][pixel] in planes (tile_plane.h), where every tap is a distance along a row,
// and diff_dst interleaved in pairs of pixels, with zeros at the ends of rows. Of a 1x1 convolution
// the one with fewer channels is transposed, which takes longer than interleaving.
//
//   slot (some of the samples)  x  share of the row blocks   one thread
//     strip of rows, or a few images, packed in the second-level cache
//       32 x 32 channels x tap                               sums, f32, in registers
//
// The sums of the slots are added in their order, so bits do not depend on threads.
// Cost: 2 N OH OW C K KH KW FLOPs and those of the ends of rows; memory traffic is src and
// diff_dst, once per share. A map of src (batch norm before) is applied, and rounded, on the way.
// Scratch: a sum of all weights for each slot, at most kMostSumBytes in all or one. Thread-safety:
// as ConvolutionAlgorithm.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_WEIGHTS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/tiles/tile_plane.h"
#include "layers/convolution/tiles/tile_problem.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class TileWeights : public ConvolutionAlgorithm {
 public:
  // By the best unit of this machine; null unless IsForTiles (tile_problem.h).
  static std::unique_ptr<ConvolutionAlgorithm> Create(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction);

  // `unit`: one that this machine has.
  TileWeights(const ConvolutionProblem& problem, Bf16Unit unit);

  std::string name() const override { return TileAlgorithmName(unit_); }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  bool takes_affine() const override { return true; }
  void Run(const ConvolutionTensors& tensors) override;

 private:
  struct Range {
    int64_t begin, end;
  };
  // What a thread packs a strip into.
  struct Buffers {
    Bfloat16 *rows, *columns, *line;
  };
  // Rows of results of one image, or all of those of several, one after another in the lines.
  struct Strip {
    int64_t sample, samples, row, rows;
  };

  void DivideIntoStrips();
  void PackSrc(const ConvolutionTensors& tensors, const Strip& strip, int64_t block, int64_t phase,
               Bfloat16* line) const;
  void PackDiffDst(const ConvolutionTensors& tensors, const Strip& strip, int64_t block,
                   Bfloat16* line) const;
  void PackRows(const ConvolutionTensors& tensors, const Strip& strip, const Range& blocks,
                const Buffers& buffers) const;
  void PackColumns(const ConvolutionTensors& tensors, const Strip& strip,
                   const Buffers& buffers) const;
  void AddStrip(const ConvolutionTensors& tensors, const Strip& strip, const Range& blocks,
                const Buffers& buffers, float* sums, bool first) const;
  void AddSlots(const float* sums, float* diff_weight) const;

  int64_t taps() const { return static_cast<int64_t>(plane_.results[0].taps.size()); }
  int64_t SumFloats() const { return row_blocks_ * column_blocks_ * taps() * 256; }
  int64_t ImagePixels() const { return plane_.Pixels(rows_); }  // of an image in a line
  int64_t LinePixels() const;  // of a packed line: whole groups, and what taps reach beyond

  const Bf16Unit unit_;
  const Bf16UnitKernels kernels_;
  const BlobDesc src_, dst_;
  const Window window_;
  const TilePlane plane_;
  const bool src_is_rows_;
  const int64_t row_blocks_, column_blocks_;  // of 16 channels
  int64_t rows_ = 0, samples_ = 1;            // of results, and images, in a strip
  int64_t slots_ = 1, threads_ = 1, shares_ = 1;
  std::vector<int64_t> tap_pixels_;  // in a line, with the line of its phase
  ScratchLayout scratch_;
  size_t sums_ = 0, rows_at_ = 0, columns_at_ = 0, lines_ = 0;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_WEIGHTS_H_
