// The three directions of a 3x3 convolution of stride 2 by Winograd's minimal filtering, as
// algorithms that a layer can choose: 9/16 of the multiplications of direct convolution. Where the
// work is done: winograd_strided_data.h (forward and backward-data), winograd_strided_weights.h.
//
// A NaN or infinity in an image spreads over the tile of outputs that reads it, never less than
// direct convolution would spread it.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_CONVOLUTION_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_CONVOLUTION_H_

#include <memory>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

// Null where it does not apply (WinogradStridedProblem::IsSupported).
std::unique_ptr<ConvolutionAlgorithm> CreateWinogradStrided(const ConvolutionProblem& problem,
                                                            ConvolutionDirection direction);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_CONVOLUTION_H_
