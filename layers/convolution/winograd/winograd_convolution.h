// The three directions of a 3x3 convolution of stride 1 by Winograd's minimal filtering, as
// algorithms that a layer can choose. `tile` is the m of F(m x m, 3 x 3): 4 (a quarter of the
// multiplications of direct convolution) or 2 (4/9). Where the work is done: winograd_data.h
// (forward and backward-data), winograd_weights.h (backward-weights).
//
// Forward and backward-weights can map src while they load it (takes_affine): tiles overlap, so
// that a pixel is mapped 1.5 (F(4)) or 2 times.
//
// Error relative to double precision (Euclidean norm): F(2) 2e-7 to 8e-7, F(4) 4e-7 to 3e-6; direct
// convolution has 1e-7 to 6e-7 (README.md). A NaN or infinity in an image spreads over the tile of
// outputs that reads it, never less than direct convolution would spread it.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_CONVOLUTION_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_CONVOLUTION_H_

#include <memory>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

// Null where Winograd does not apply (WinogradProblem::IsSupported).
std::unique_ptr<ConvolutionAlgorithm> CreateWinograd(const ConvolutionProblem& problem,
                                                     ConvolutionDirection direction, int tile);

// F(2x2, 3x3) on bf16 blobs with bf16 operands of the products. Null where that does not apply
// (WinogradProblem::SupportsBf16). Error of each direction: 3.3e-3 to 4.6e-3 (README.md).
std::unique_ptr<ConvolutionAlgorithm> CreateWinogradBf16(const ConvolutionProblem& problem,
                                                         ConvolutionDirection direction);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_CONVOLUTION_H_
