// The gradient of the weights of a 1x1 convolution of stride 1, and that of its bias:
//
//   diff_weight[oc][ic] = sum over n, pixel of diff_dst[n][oc][pixel] src[n][ic][pixel]
//
// The result is cut into tiles that fit the second-level cache. Where there are too few tiles to
// keep many threads busy, and pixels enough to make it worth while, the samples are divided among
// slots, each with a sum of its own; the sums are then added in order. Slots are a function of the
// shape alone: the bits are the same for every number of threads.
// Cost: 2 N H W IC OC FLOPs; src and diff_dst are read once if there is one tile.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_WEIGHTS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/pixel_pieces.h"

namespace ringtail {

class PointwiseWeights : public ConvolutionAlgorithm {
 public:
  // `problem` is one that CreatePointwise takes, of stride 1.
  explicit PointwiseWeights(const ConvolutionProblem& problem);

  std::string name() const override { return "pointwise"; }
  size_t scratch_bytes() const override;
  void Run(const ConvolutionTensors& tensors) override;

 private:
  // One operand's channels run down the rows of a tile, the other's along its columns.
  struct Axis {
    BlobDesc blob;
    int64_t weight_stride = 0;  // in diff_weight, of one channel
    int64_t tile = 0;           // channels per tile: whole blocks
    int64_t tiles() const { return (blob.C + tile - 1) / tile; }
    int64_t Channels(int64_t i) const;  // of tile i, without padding
    const float* At(const float* data, const PixelPieces::Run& run, int64_t i) const;
  };

  int64_t Tiles() const { return rows_.tiles() * columns_.tiles(); }
  int64_t TileFloats() const { return rows_.tile * columns_.tile; }
  void SumTile(const float* rows, const float* columns, int64_t slot, int64_t tile,
               float* sum) const;
  void WriteTile(const float* sums, int64_t tile, float* diff_weight) const;
  void SumBias(const float* diff_dst, float* sums, float* diff_bias) const;

  BlobDesc dst_;
  bool bias_;
  bool columns_are_src_;
  Axis rows_, columns_;
  int64_t slots_ = 1;
  PixelPieces pieces_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_WEIGHTS_H_
