// Which algorithm a layer uses for one direction of its convolution: the fastest here, by
// measurement, or the one that the config asks for.
//
// Between batch norms a candidate is charged for what it leaves to them: writing src, forward or
// again before backward (unless takes_affine), taking the moments of dst (unless moments_pixels),
// writing diff_dst (unless takes_gradient_map), taking the sums of diff_src (unless
// gradient_sums_pixels). So it is for the sum of two gradients of src
// that it leaves to the net (unless adds_to_diff_src).
// Both gradients are computed by the fastest algorithm for each, or by one for both if that takes
// less time than the two.
// Measuring runs every candidate on memory of its own, the fast ones several times: a tenth of a
// second per direction of an ordinary layer, a few seconds for one that itself takes seconds. What
// was measured is remembered (algorithm_choices.h).
// Whoever is told to stop (core/stop_signal.h) does not begin another call.
// Thread-safety: the trainer thread only.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_CHOOSE_ALGORITHM_H_
#define RINGTAIL_LAYERS_CONVOLUTION_CHOOSE_ALGORITHM_H_

#include <memory>
#include <vector>

#include "layers/convolution/algorithm_choices.h"
#include "layers/convolution/convolution_algorithm.h"
#include "layers/net.pb.h"

namespace ringtail {

// All that can do it; oneDNN's, which can do everything but kBackward in one go, comes first.
// Throws dnnl::error.
std::vector<std::unique_ptr<ConvolutionAlgorithm>> ConvolutionCandidates(
    const ConvolutionProblem& problem, ConvolutionDirection direction);

// How many channels of dst go to a block: what oneDNN writes best; or, where it has plain loops
// alone (on SSE4.1, wherever channels do not fill blocks), what src has, if an algorithm of ours
// then applies. problem.dst.block is not read. Throws dnnl::error.
int64_t OutputBlock(const ConvolutionProblem& problem);

const char* DirectionName(ConvolutionDirection direction);  // "backward-data"

// "<machine>; <direction> <shapes>": what a choice depends on.
std::string ChoiceKey(const ConvolutionProblem& problem, ConvolutionDirection direction);

// Thrown between two calls of candidates, once this process has been told to stop.
struct MeasuringStopped {};

// FASTEST: by `choices`, if all of today's candidates were measured for it (a choice that the run
// keeps is taken as it is); or measured and added there. Without `measure`: by whatever is known,
// else oneDNN's; so without the memory to measure. Others: where they apply, else oneDNN's.
// Throws dnnl::error, MeasuringStopped.
std::unique_ptr<ConvolutionAlgorithm> ChooseAlgorithm(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction,
                                                      ConvolutionPolicy policy, bool measure,
                                                      AlgorithmChoices* choices);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_CHOOSE_ALGORITHM_H_
