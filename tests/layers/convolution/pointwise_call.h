// PointwiseCall: one call of a 1x1 convolution's algorithm with the maps of its neighbours or
// without, on memory that is guarded and full of NaN; and the definition in double.
//
//   const ConvolutionProblem p = PointwiseProblem({2, 24, 40, 7, 7});
//   const PointwiseTensors data(p);
//   PointwiseResult r = RunPointwise(p, data, ConvolutionDirection::kForward, {.moments = true});
//   EXPECT_LT(RelativeError(r.dst, DefinedForward(p, data)), 1e-6);
#ifndef RINGTAIL_TESTS_LAYERS_CONVOLUTION_POINTWISE_CALL_H_
#define RINGTAIL_TESTS_LAYERS_CONVOLUTION_POINTWISE_CALL_H_

#include <cstdint>
#include <limits>
#include <ostream>
#include <vector>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

struct PointwiseShape {
  int64_t N, C, K, H, W;  // K: channels of dst
  int64_t stride = 1;
  bool bias = false;
  Activation activation = Activation::kNone;
};
std::ostream& operator<<(std::ostream& out, const PointwiseShape& shape);

// On bf16 blobs the algorithms are those with bf16 products.
ConvolutionProblem PointwiseProblem(const PointwiseShape& shape, BlobType type = BlobType::kF32);

// Plain tensors of a problem; rounded to bf16 if its blobs are bf16.
struct PointwiseTensors {
  explicit PointwiseTensors(const ConvolutionProblem& problem);
  std::vector<float> src, diff_dst, weight, bias;
};

enum class Mapped {
  kNot,
  kOnTheWay,       // by the algorithm
  kBefore,         // written, but to an algorithm that was made to map it
  kBeforeUnaware,  // written, to one that was not
};

struct PointwiseOptions {
  int threads = 1;
  Mapped src = Mapped::kNot, diff_dst = Mapped::kNot;
  float low = 0, high = 1.5F;  // clamps of the maps
  bool moments = false;
  bool sums = false;       // of diff_src; src comes mapped on the way
  bool unaligned = false;  // dst starts within a cache line
  bool add = false;        // to data.src, which is put into diff_src
};

struct PointwiseResult {
  std::vector<float> dst, diff_src, diff_weight, diff_bias;  // blobs: plain; empty: not written
  std::vector<double> mean, m2;                              // BlobMoments of dst
  std::vector<double> g, gx;                                 // BlobGradientSums of diff_src
  int64_t part_pixels = 0;                                   // theirs
  bool operator==(const PointwiseResult&) const = default;
};

// Fails the test if memory next to a buffer or an input was written, or padding is not zero.
PointwiseResult RunPointwise(const ConvolutionProblem& problem, const PointwiseTensors& data,
                             ConvolutionDirection direction, const PointwiseOptions& options = {});

// `data` with src and diff_dst as `options` map them.
PointwiseTensors MappedData(const ConvolutionProblem& problem, const PointwiseTensors& data,
                            const PointwiseOptions& options);

// Whether the sums of diff_src are those over what was written, in double.
void ExpectSumsOf(const ConvolutionProblem& problem, const PointwiseTensors& data,
                  const PointwiseOptions& options, const PointwiseResult& result);

// Whether the moments of dst are those of what was written, in double.
void ExpectMomentsOf(const ConvolutionProblem& problem, const PointwiseResult& result);

// The sums of the definition, plain.
std::vector<double> DefinedForward(const ConvolutionProblem& problem, const PointwiseTensors& data);
std::vector<double> DefinedDiffSrc(const ConvolutionProblem& problem, const PointwiseTensors& data);
std::vector<double> DefinedDiffWeight(const ConvolutionProblem& problem,
                                      const PointwiseTensors& data);

// |actual - expected| / |expected|, as vectors.
double RelativeError(const std::vector<float>& actual, const std::vector<double>& expected);

constexpr float kUnbounded = std::numeric_limits<float>::infinity();

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_CONVOLUTION_POINTWISE_CALL_H_
