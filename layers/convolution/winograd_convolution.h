// The three directions of a 3x3 convolution of stride 1 by Winograd's minimal filtering, as
// algorithms that a layer can choose. `tile` is the m of F(m x m, 3 x 3): 4 (a quarter of the
// multiplications of direct convolution) or 2 (4/9). Where the work is done: winograd_data.h
// (forward and backward-data), winograd_weights.h (backward-weights).
//
// Forward and backward-weights can map src while they load it (takes_affine). Tiles overlap, so a
// pixel is mapped 1.5 (F(4)) or 2 times.
//
// Accuracy, relative to double precision in the Euclidean norm (tests/layers/winograd_test.cc):
// F(2) 2e-7 to 1e-6, as direct convolution; F(4) 6e-7 to 7e-6. A NaN or infinity in a picture
// spreads over the tile of 4x4 or 2x2 outputs that reads it, never less than direct convolution
// would spread it.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_CONVOLUTION_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_CONVOLUTION_H_

#include <memory>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

// Null where Winograd does not apply (WinogradProblem::IsSupported).
std::unique_ptr<ConvolutionAlgorithm> CreateWinograd(const ConvolutionProblem& problem,
                                                     ConvolutionDirection direction, int tile);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_CONVOLUTION_H_
