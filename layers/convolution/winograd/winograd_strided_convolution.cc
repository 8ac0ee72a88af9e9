#include "layers/convolution/winograd/winograd_strided_convolution.h"

#include <limits>

#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_strided_data.h"
#include "layers/convolution/winograd/winograd_strided_weights.h"

namespace ringtail {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr const char* kName = "winograd stride 2";

class Forward : public ConvolutionAlgorithm {
 public:
  explicit Forward(const WinogradStridedProblem& problem)
      : low_(LowerBound(problem.activation)),
        high_(UpperBound(problem.activation)),
        data_(problem, WinogradStridedData::Direction::kForward, NumComputeThreads()) {}
  std::string name() const override { return kName; }
  size_t scratch_bytes() const override { return data_.scratch_bytes(); }
  void Run(const ConvolutionTensors& t) override {
    data_.Run(t.src, t.weight, t.bias, low_, high_, t.dst, t.scratch);
  }

 private:
  float low_, high_;
  WinogradStridedData data_;
};

class BackwardData : public ConvolutionAlgorithm {
 public:
  explicit BackwardData(const WinogradStridedProblem& problem)
      : data_(problem, WinogradStridedData::Direction::kBackwardData, NumComputeThreads()) {}
  std::string name() const override { return kName; }
  size_t scratch_bytes() const override { return data_.scratch_bytes(); }
  void Run(const ConvolutionTensors& t) override {
    data_.Run(t.diff_dst, t.weight, /*bias=*/nullptr, -kInfinity, kInfinity, t.diff_src, t.scratch);
  }

 private:
  WinogradStridedData data_;
};

class BackwardWeights : public ConvolutionAlgorithm {
 public:
  explicit BackwardWeights(const WinogradStridedProblem& problem)
      : weights_(problem, NumComputeThreads()) {}
  std::string name() const override { return kName; }
  size_t scratch_bytes() const override { return weights_.scratch_bytes(); }
  void Run(const ConvolutionTensors& t) override {
    weights_.Run(t.src, t.diff_dst, t.diff_weight, t.diff_bias, t.scratch);
  }

 private:
  WinogradStridedWeights weights_;
};

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> CreateWinogradStrided(const ConvolutionProblem& problem,
                                                            ConvolutionDirection direction) {
  const WinogradStridedProblem strided{problem};
  if (!strided.IsSupported()) return nullptr;
  switch (direction) {
    case ConvolutionDirection::kForward:
      return std::make_unique<Forward>(strided);
    case ConvolutionDirection::kBackwardData:
      return std::make_unique<BackwardData>(strided);
    case ConvolutionDirection::kBackwardWeights:
      return std::make_unique<BackwardWeights>(strided);
    case ConvolutionDirection::kBackward:
      break;
  }
  return nullptr;
}

}  // namespace ringtail
