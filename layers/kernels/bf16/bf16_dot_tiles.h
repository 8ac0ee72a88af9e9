// The matrix products of bf16_tiles.h for processors without tiles, by vdpbf16ps: as in
// bf16_products.h only where HasBf16Products(), with its numerics.
#ifndef RINGTAIL_LAYERS_KERNELS_BF16_BF16_DOT_TILES_H_
#define RINGTAIL_LAYERS_KERNELS_BF16_BF16_DOT_TILES_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "layers/kernels/bf16/bf16_tiles.h"

namespace ringtail {

// What MultiplyBf16Tiles does, and MultiplyBf16TileGradient.
RT_DECLARE_KERNEL(void MultiplyBf16DotTiles(const Bf16TileProduct& product))
RT_DECLARE_KERNEL(void MultiplyBf16DotGradient(const Bf16TileGradient& product))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_BF16_BF16_DOT_TILES_H_
