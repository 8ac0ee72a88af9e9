// Naive layers: what each kind computes, in double, by loops that follow the formula in net.proto
// and nothing else. Slow and obvious; the second opinion of every test of a layer's forward, and,
// through finite differences, of its backward.
//
// Blobs and parameters are plain row-major; parameters in the order of Layer::InferShape's request.
#ifndef RINGTAIL_TESTS_LAYERS_NAIVE_H_
#define RINGTAIL_TESTS_LAYERS_NAIVE_H_

#include <cstdint>
#include <vector>

#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

using Doubles = std::vector<double>;

struct NaiveProblem {
  LayerConfig config;
  Activation fused = Activation::kNone;
  uint64_t key = 0;  // of the layer, for random masks
  StepContext step;
  std::vector<BlobDesc> src;  // shapes; blocks are ignored
  BlobDesc dst;
};

// dst, with the fused activation applied. Ends the process if the kind has no reference here.
Doubles NaiveForward(const NaiveProblem& problem, const std::vector<Doubles>& src,
                     const std::vector<Doubles>& parameters);

// The kinds that slide a window over the image (tests/layers/naive_window.cc).
Doubles NaiveConvolution(const ConvolutionConfig& config, const BlobDesc& src_desc,
                         const BlobDesc& dst_desc, const Doubles& src,
                         const std::vector<Doubles>& parameters);
Doubles NaiveMaxPool(const PoolConfig& config, const BlobDesc& src_desc, const BlobDesc& dst_desc,
                     const Doubles& src);
Doubles NaiveAveragePool(const PoolConfig& config, const BlobDesc& src_desc,
                         const BlobDesc& dst_desc, const Doubles& src);
// `output` rows and columns; 1: global.
Doubles NaiveAdaptiveAveragePool(int64_t output, const BlobDesc& src_desc, const Doubles& src);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_NAIVE_H_
