#include "layers/convolution/pixel_view.h"

#include "layers/kernels/batch_norm.h"

namespace ringtail {
namespace {

// Calls map(channel, offset, to) for each piece of each block: where it lies in the blob, where it
// goes in the buffer.
template <typename Map>
PixelView InBuffer(const PixelBlocks& blocks, float* buffer, const Map& map) {
  float* to = buffer;
  for (int64_t block = 0; block < blocks.blocks; ++block) {
    const int64_t channel = (blocks.first_block + block) * blocks.desc.block;
    for (int64_t piece = 0; piece < blocks.run.pieces; ++piece, to += blocks.piece_floats()) {
      map(channel, blocks.Offset(block, piece), to);
    }
  }
  return {.data = buffer,
          .block_stride = blocks.run.pieces * blocks.piece_floats(),
          .sample_stride = blocks.piece_floats()};
}

}  // namespace

PixelView View(const PixelBlocks& blocks, const float* blob) {
  return {.data = blob + blocks.Offset(0, 0),
          .block_stride = blocks.plane_floats(),
          .sample_stride = blocks.desc.channel_blocks() * blocks.plane_floats()};
}

PixelView View(const PixelBlocks& blocks, const float* blob, const ChannelAffine& affine,
               float* buffer) {
  if (affine.is_identity()) return View(blocks, blob);
  const auto apply = RT_KERNEL(BatchNormApply);
  return InBuffer(blocks, buffer, [&](int64_t channel, int64_t offset, float* to) {
    apply(blob + offset, blocks.run.pixels, blocks.desc.block, affine.From(channel), to);
  });
}

PixelView View(const PixelBlocks& blocks, const float* diff_dst, const ChannelGradient& gradient,
               float* buffer) {
  if (gradient.is_identity()) return View(blocks, diff_dst);
  const auto map = RT_KERNEL(BatchNormGradient);
  return InBuffer(blocks, buffer, [&](int64_t channel, int64_t offset, float* to) {
    const ChannelGradient g = gradient.From(channel);
    map(g.src + offset, diff_dst + offset, blocks.run.pixels, blocks.desc.block, g.affine, g.slope,
        g.offset, to);
  });
}

}  // namespace ringtail
