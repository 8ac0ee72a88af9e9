// ProblemMemory: tensors for one direction of a convolution, to measure its candidates on.
// Thread-safety: the trainer thread only.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_PROBLEM_MEMORY_H_
#define RINGTAIL_LAYERS_CONVOLUTION_PROBLEM_MEMORY_H_

#include <cstddef>
#include <vector>

#include "core/aligned_buffer.h"
#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

// Filled with numbers that no algorithm is slow on; the maps of its batch norms are the identity.
class ProblemMemory {
 public:
  // `problem` must outlive it.
  ProblemMemory(const ConvolutionProblem& problem, ConvolutionDirection direction,
                size_t scratch_bytes);
  // The bytes that such an object allocates.
  static size_t Bytes(const ConvolutionProblem& problem, ConvolutionDirection direction,
                      size_t scratch_bytes);

  // The arguments that the candidate gets in a net. Valid until the next call.
  ConvolutionTensors Tensors(ConvolutionDirection direction, const ConvolutionAlgorithm& candidate);

  ChannelAffine affine() const;  // the identity
  float* src() { return src_.floats().data(); }
  float* dst() { return dst_.floats().data(); }
  float* more_src() { return more_src_.floats().data(); }  // diff_src beside src

 private:
  BlobMoments Moments(int64_t part_pixels);
  BlobGradientSums Sums(int64_t part_pixels);
  double* TwoArrays(int64_t elements);

  const ConvolutionProblem& problem_;
  AlignedBuffer src_, dst_, more_src_, weight_, diff_weight_, bias_, scratch_;
  std::vector<float> zeros_, ones_;  // per channel
  std::vector<double> part_sums_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_PROBLEM_MEMORY_H_
