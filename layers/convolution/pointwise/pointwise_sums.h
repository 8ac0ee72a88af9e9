// The sums over pixels that make the gradient of a 1x1 convolution's weights:
//
//   diff_weight[oc][ic] = sum over n, pixel of diff_dst[n][oc][pixel] src[n][ic][pixel]
//
// The result is cut into tiles. Where there are too few tiles to keep many threads busy, and pixels
// enough to make it worth while, the samples are divided among slots, each with a sum of its own;
// the sums are then added in order. Slots are a function of the shape alone: the bits are the same
// for every number of threads.
// Thread-safety: several threads may add to different (slot, tile)s.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_SUMS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_SUMS_H_

#include <cstdint>

#include "core/kernels/bfloat16.h"
#include "core/round.h"
#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/pixel_view.h"

namespace ringtail {

class PointwiseSums {
 public:
  // Tiles of at most max_rows x max_columns channels, whichever of src and dst those are.
  PointwiseSums(const ConvolutionProblem& problem, int64_t max_rows, int64_t max_columns);

  int64_t slots() const { return slots_; }
  int64_t tiles() const { return rows_.tiles() * columns_.tiles(); }
  int64_t floats() const { return slots_ * tiles() * TileFloats(); }  // of `sums`, below

  // The channels of a run that go into a tile.
  PixelBlocks SrcBlocks(const PixelPieces::Run& run, int64_t tile) const;
  PixelBlocks DstBlocks(const PixelPieces::Run& run, int64_t tile) const;
  int64_t SrcTileChannels() const { return (columns_are_src_ ? columns_ : rows_).tile; }
  int64_t DstTileChannels() const { return (columns_are_src_ ? rows_ : columns_).tile; }

  // One run's part of a tile. `first`: of this slot and tile, which it overwrites.
  struct RunViews {
    const PixelPieces::Run& run;
    PixelView src, diff_dst;
    PixelView fetch_src = {}, fetch_dst = {};  // of the next run, what is to come from memory
  };
  void Add(const RunViews& views, int64_t slot, int64_t tile, bool first, float* sums) const;
  // The same from a run's blocks of SrcBlocks and DstBlocks in bf16, interleaved
  // (kernels/bf16/bf16_products.h), each of block_size numbers.
  struct Bf16Run {
    const Bfloat16 *src, *diff_dst;
    int64_t block_size;
  };
  void AddBf16(const Bf16Run& run, int64_t slot, int64_t tile, bool first, float* sums) const;
  // Adds up the slots of a tile and writes it where it belongs.
  void Write(int64_t tile, float* sums, float* diff_weight) const;

 private:
  // One operand's channels run down the rows of a tile, the other's along its columns.
  struct Axis {
    BlobDesc blob;
    int64_t weight_stride = 0;  // in diff_weight, of one channel
    int64_t tile = 0;           // channels per tile: whole blocks
    int64_t tiles() const { return CeilDivide(blob.C, tile); }
    int64_t Channels(int64_t i) const;  // of tile i, without padding
    PixelBlocks Blocks(const PixelPieces::Run& run, int64_t i) const;
  };
  int64_t TileFloats() const { return rows_.tile * columns_.tile; }
  int64_t RowOf(int64_t tile) const { return tile / columns_.tiles(); }
  int64_t ColumnOf(int64_t tile) const { return tile % columns_.tiles(); }

  bool columns_are_src_;
  Axis rows_, columns_;
  int64_t slots_ = 1;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_SUMS_H_
