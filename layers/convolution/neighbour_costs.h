// NeighbourCosts: what the batch norms before and after a convolution, and the net, have to do
// where its algorithm does not do it (layers/fusion.h), measured on the problem's own shapes.
// Thread-safety: the trainer thread only.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_NEIGHBOUR_COSTS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_NEIGHBOUR_COSTS_H_

#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/problem_memory.h"

namespace ringtail {

class NeighbourCosts {
 public:
  // Measures what the problem's neighbours want in this direction.
  NeighbourCosts(const ConvolutionProblem& problem, ConvolutionDirection direction,
                 ProblemMemory* memory);

  // Seconds that the candidate leaves to the neighbours.
  double SecondsLeftBy(const ConvolutionAlgorithm& candidate) const;

 private:
  // Element: of src, of dst.
  template <typename Element>
  void MeasureSrc(const ConvolutionProblem& problem, ConvolutionDirection direction,
                  ProblemMemory* memory);
  template <typename Element>
  void MeasureDst(const ConvolutionProblem& problem, ConvolutionDirection direction,
                  ProblemMemory* memory);
  double write_src_ = 0, take_moments_ = 0, write_diff_dst_ = 0, take_sums_ = 0, add_diff_src_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_NEIGHBOUR_COSTS_H_
