// PixelView: where a run of pixels of a blob (pixel_pieces.h) lies, channel block by channel block:
// in the blob itself or, where the input is a map of the blob (batch norm before or after the
// convolution), mapped in a buffer that fits a cache. The blob is then read from memory once, and
// the mapped one is never written there. Thread-safety: value types; a buffer belongs to one
// thread.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_PIXEL_VIEW_H_
#define RINGTAIL_LAYERS_CONVOLUTION_PIXEL_VIEW_H_

#include <cstdint>

#include "layers/blob.h"
#include "layers/convolution/pixel_pieces.h"
#include "layers/kernels/affine.h"
#include "layers/kernels/pointwise.h"

namespace ringtail {

// Pixel p of piece i in channel block b: data + b * block_stride + i * sample_stride + p * lanes.
struct PixelView {
  const float* data = nullptr;
  int64_t block_stride = 0, sample_stride = 0;  // floats
};

inline PointwiseFetch Fetch(const PixelView& view) {
  return {view.data, view.block_stride, view.sample_stride};
}

// Channel blocks [first_block, first_block + blocks) of a run.
struct PixelBlocks {
  const BlobDesc& desc;
  const PixelPieces::Run& run;
  int64_t first_block, blocks;

  int64_t first_channel() const { return first_block * desc.block; }
  int64_t plane_floats() const { return desc.plane() * desc.block; }
  int64_t piece_floats() const { return run.pixels * desc.block; }
  // Of the first pixel of a piece in a block, counted from first_block: its offset in the blob.
  int64_t Offset(int64_t block, int64_t piece) const {
    const int64_t plane = (run.sample + piece) * desc.channel_blocks() + first_block + block;
    return plane * plane_floats() + run.first * desc.block;
  }
};

// blob[...] itself.
PixelView View(const PixelBlocks& blocks, const float* blob);
// blob[...], or affine(blob[...]) written to `buffer`, which has room for it.
PixelView View(const PixelBlocks& blocks, const float* blob, const ChannelAffine& affine,
               float* buffer);
// diff_dst[...], or gradient(diff_dst[...]), likewise.
PixelView View(const PixelBlocks& blocks, const float* diff_dst, const ChannelGradient& gradient,
               float* buffer);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_PIXEL_VIEW_H_
