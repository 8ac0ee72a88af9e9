// Which algorithm a layer uses for one direction of its convolution: the fastest here, by
// measurement (measure_algorithms.h), or the one that the config asks for. Both gradients are
// computed by the fastest algorithm for each, or by one for both if that takes less time than the
// two. What was measured is remembered (layers/algorithm_choices.h).
// Thread-safety: the trainer thread only.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_CHOOSE_ALGORITHM_H_
#define RINGTAIL_LAYERS_CONVOLUTION_CHOOSE_ALGORITHM_H_

#include <memory>
#include <string>

#include "layers/algorithm_choices.h"
#include "layers/convolution/convolution_algorithm.h"
#include "layers/net.pb.h"

namespace ringtail {

const char* DirectionName(ConvolutionDirection direction);  // "backward-data"

// "<machine>; <direction> <shapes>": what a choice depends on. Stored in caches and checkpoints.
std::string ChoiceKey(const ConvolutionProblem& problem, ConvolutionDirection direction);

// FASTEST: by `choices`, if all of today's candidates were measured for it (a choice that the run
// keeps is taken as it is); or measured and added there. Without `measure`: by whatever is known,
// else oneDNN's; so without the memory to measure. Others: where they apply, else oneDNN's.
// Throws dnnl::error, MeasuringStopped (measure_algorithms.h).
std::unique_ptr<ConvolutionAlgorithm> ChooseAlgorithm(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction,
                                                      ConvolutionPolicy policy, bool measure,
                                                      AlgorithmChoices* choices);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_CHOOSE_ALGORITHM_H_
