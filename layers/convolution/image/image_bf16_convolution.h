// Convolutions of images by bf16 products: f32 planes of few channels, which would fill a block of
// channels with padding, to bf16 blobs. Each row of an image is rounded once, in a cache, to
// [pixel][channel] with the window's padding (image_lines.h); there the taps of one row of a filter
// are adjacent, and pairs of them are what vdpbf16ps multiplies.
//
//   forward           sums over those pairs; takes the moments of dst (image_bf16_forward.h)
//   backward-weights  sums over pairs of pixels of dst (image_bf16_weights.h)
//   with AMX          both by tiles (image_tiles_forward.h, image_tiles_weights.h)
//
// The gradient of an image is never asked for. Products of bf16 are summed in f32; results have the same
// bits for every number of threads.
// Cost: 2 N H W K C KH KW FLOPs, KW C rounded up to an even number (backward: to a multiple of 8).
#ifndef RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_BF16_CONVOLUTION_H_
#define RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_BF16_CONVOLUTION_H_

#include <memory>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

// Null unless src is f32 in planes, at most 4 of them, dst is bf16 in blocks of a register that its
// channels fill, the filter's rows are short (16 ceil(KW C / 16) + SW C <= 64), neither dilated nor
// grouped, and the machine has such products; and for backward-data and backward.
std::unique_ptr<ConvolutionAlgorithm> CreateImageBf16(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction);

// The same by tiles (AMX), where the machine has them (tiles/has_tiles.h).
std::unique_ptr<ConvolutionAlgorithm> CreateImageTiles(const ConvolutionProblem& problem,
                                                       ConvolutionDirection direction);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_BF16_CONVOLUTION_H_
