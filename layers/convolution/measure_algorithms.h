// Which candidate is the fastest, by running all of them.
//
// Every candidate runs on memory of its own, the fast ones several times: a tenth of a second per
// direction of an ordinary layer, three tenths while other programs take the cores, a few seconds
// for a layer that itself takes seconds (measuring_rounds.h).
// Between batch norms a candidate is charged for what it leaves to them: writing src, forward or
// again before backward (unless takes_affine), taking the moments of dst (unless moments_pixels),
// writing diff_dst (unless takes_gradient_map), taking the sums of diff_src (unless
// gradient_sums_pixels); and, if it cannot add to diff_src (adds_to_diff_src), for the addition that
// the net does.
// Thread-safety: the trainer thread only.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_MEASURE_ALGORITHMS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_MEASURE_ALGORITHMS_H_

#include "layers/algorithm_choices.h"
#include "layers/convolution/candidates.h"
#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

// Thrown between two calls of candidates, once this process has been told to stop
// (core/stop_signal.h).
struct MeasuringStopped {};

// Whether the machine has memory left to measure with.
bool CanMeasure(const ConvolutionCandidates& candidates, const ConvolutionProblem& problem,
                ConvolutionDirection direction);

// The fastest of the candidates, and the seconds of each. Throws dnnl::error, MeasuringStopped.
AlgorithmChoice MeasureAlgorithms(const ConvolutionCandidates& candidates,
                                  const ConvolutionProblem& problem,
                                  ConvolutionDirection direction);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_MEASURE_ALGORITHMS_H_
