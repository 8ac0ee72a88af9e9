#include "layers/convolution/winograd/winograd_convolution.h"

#include <fmt/core.h>

#include <limits>

#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_data.h"
#include "layers/convolution/winograd/winograd_weights.h"

namespace ringtail {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string Name(const WinogradProblem& problem) {
  return fmt::format("winograd {0}x{0}", problem.tile);
}

class Forward : public ConvolutionAlgorithm {
 public:
  explicit Forward(const WinogradProblem& problem)
      : name_(Name(problem)),
        low_(LowerBound(problem.activation)),
        high_(UpperBound(problem.activation)),
        data_(problem, WinogradData::Direction::kForward, NumComputeThreads()) {}
  std::string name() const override { return name_; }
  size_t scratch_bytes() const override { return data_.scratch_bytes(); }
  bool takes_affine() const override { return true; }
  void Run(const ConvolutionTensors& t) override {
    data_.Run(t.src, t.src_affine, t.weight, t.bias, low_, high_, t.dst, t.scratch);
  }

 private:
  std::string name_;
  float low_, high_;
  WinogradData data_;
};

class BackwardData : public ConvolutionAlgorithm {
 public:
  explicit BackwardData(const WinogradProblem& problem)
      : name_(Name(problem)),
        data_(problem, WinogradData::Direction::kBackwardData, NumComputeThreads()) {}
  std::string name() const override { return name_; }
  size_t scratch_bytes() const override { return data_.scratch_bytes(); }
  void Run(const ConvolutionTensors& t) override {
    data_.Run(t.diff_dst, ChannelAffine(), t.weight, /*bias=*/nullptr, -kInfinity, kInfinity,
              t.diff_src, t.scratch);
  }

 private:
  std::string name_;
  WinogradData data_;
};

class BackwardWeights : public ConvolutionAlgorithm {
 public:
  explicit BackwardWeights(const WinogradProblem& problem)
      : name_(Name(problem)), weights_(problem, NumComputeThreads()) {}
  std::string name() const override { return name_; }
  size_t scratch_bytes() const override { return weights_.scratch_bytes(); }
  bool takes_affine() const override { return true; }
  void Run(const ConvolutionTensors& t) override {
    weights_.Run(t.src, t.src_affine, t.diff_dst, t.diff_weight, t.diff_bias, t.scratch);
  }

 private:
  std::string name_;
  WinogradWeights weights_;
};

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> CreateWinograd(const ConvolutionProblem& problem,
                                                     ConvolutionDirection direction, int tile) {
  const WinogradProblem winograd{problem, tile};
  if (!winograd.IsSupported()) return nullptr;
  switch (direction) {
    case ConvolutionDirection::kForward:
      return std::make_unique<Forward>(winograd);
    case ConvolutionDirection::kBackwardData:
      return std::make_unique<BackwardData>(winograd);
    case ConvolutionDirection::kBackwardWeights:
      return std::make_unique<BackwardWeights>(winograd);
    case ConvolutionDirection::kBackward:
      break;
  }
  return nullptr;
}

}  // namespace ringtail
