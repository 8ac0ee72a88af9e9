#include "layers/convolution/pixel_view.h"

#include "layers/kernels/map_pixels.h"

namespace ringtail {
namespace {

PixelCopy CopyOf(const PixelBlocks& blocks, const float* blob, float* buffer) {
  const PixelView from = View(blocks, blob);
  return {.from = from.data,
          .block_stride = from.block_stride,
          .piece_stride = from.sample_stride,
          .blocks = blocks.blocks,
          .pieces = blocks.run.pieces,
          .pixels = blocks.run.pixels,
          .to = buffer};
}

PixelView ViewOfCopy(const PixelBlocks& blocks, const float* buffer) {
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
  RT_KERNEL(MapPixels, CopyOf(blocks, blob, buffer), affine.From(blocks.first_channel()));
  return ViewOfCopy(blocks, buffer);
}

PixelView View(const PixelBlocks& blocks, const float* diff_dst, const ChannelGradient& gradient,
               float* buffer) {
  if (gradient.is_identity()) return View(blocks, diff_dst);
  ChannelGradient of_blocks = gradient.From(blocks.first_channel());
  of_blocks.src += blocks.Offset(0, 0);
  RT_KERNEL(MapGradientPixels, CopyOf(blocks, diff_dst, buffer), of_blocks);
  return ViewOfCopy(blocks, buffer);
}

}  // namespace ringtail
