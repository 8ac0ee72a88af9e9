// The algorithms that a convolution can choose from: one table (candidates.cc) of those of our own,
// and oneDNN's, which does everything but both gradients in one go.
// Thread-safety: the trainer thread only (oneDNN creates primitives).
#ifndef RINGTAIL_LAYERS_CONVOLUTION_CANDIDATES_H_
#define RINGTAIL_LAYERS_CONVOLUTION_CANDIDATES_H_

#include <memory>
#include <vector>

#include "layers/convolution/convolution_algorithm.h"
#include "layers/net.pb.h"

namespace ringtail {

using ConvolutionCandidates = std::vector<std::unique_ptr<ConvolutionAlgorithm>>;

// All that can compute this direction of the problem, oneDNN's first. Throws dnnl::error.
ConvolutionCandidates FindCandidates(const ConvolutionProblem& problem,
                                     ConvolutionDirection direction);

// The candidate that a config asks for by `policy` (not FASTEST), if it is among `candidates`, else
// the first, oneDNN's. Takes it out of `candidates`.
std::unique_ptr<ConvolutionAlgorithm> TakeForced(ConvolutionCandidates* candidates,
                                                 ConvolutionPolicy policy,
                                                 ConvolutionDirection direction);

// How many channels of dst go to a block: what oneDNN writes best; or, where it has plain loops
// alone (on SSE4.1, wherever channels do not fill blocks), what src has, if an algorithm of ours
// then applies. problem.dst.block is not read. Throws dnnl::error.
int64_t OutputBlock(const ConvolutionProblem& problem);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_CANDIDATES_H_
