#include "layers/convolution/winograd/winograd_convolution.h"

#include <fmt/core.h>

#include <limits>

#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_data.h"
#include "layers/convolution/winograd/winograd_weights.h"

namespace ringtail {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// "winograd 4x4", "winograd 2x2 bf16".
template <typename Operand>
std::string Name(const WinogradProblem& problem) {
  constexpr bool kBf16 = sizeof(Operand) < sizeof(float);
  return fmt::format("winograd {0}x{0}{1}", problem.tile, kBf16 ? " bf16" : "");
}

template <typename Operand>
class Forward : public ConvolutionAlgorithm {
 public:
  explicit Forward(const WinogradProblem& problem)
      : name_(Name<Operand>(problem)),
        low_(LowerBound(problem.activation)),
        high_(UpperBound(problem.activation)),
        data_(problem, ConvolutionDirection::kForward, NumComputeThreads()) {}
  std::string name() const override { return name_; }
  size_t scratch_bytes() const override { return data_.scratch_bytes(); }
  bool takes_affine() const override { return true; }
  void Run(const ConvolutionTensors& t) override {
    data_.Run(t.src, t.src_affine, t.weight, t.bias, low_, high_, t.dst, t.scratch);
  }

 private:
  std::string name_;
  float low_, high_;
  WinogradData<Operand> data_;
};

template <typename Operand>
class BackwardData : public ConvolutionAlgorithm {
 public:
  explicit BackwardData(const WinogradProblem& problem)
      : name_(Name<Operand>(problem)),
        data_(problem, ConvolutionDirection::kBackwardData, NumComputeThreads()) {}
  std::string name() const override { return name_; }
  size_t scratch_bytes() const override { return data_.scratch_bytes(); }
  void Run(const ConvolutionTensors& t) override {
    data_.Run(t.diff_dst, ChannelAffine(), t.weight, /*bias=*/nullptr, -kInfinity, kInfinity,
              t.diff_src, t.scratch);
  }

 private:
  std::string name_;
  WinogradData<Operand> data_;
};

template <typename Operand>
class BackwardWeights : public ConvolutionAlgorithm {
 public:
  explicit BackwardWeights(const WinogradProblem& problem)
      : name_(Name<Operand>(problem)), weights_(problem, NumComputeThreads()) {}
  std::string name() const override { return name_; }
  size_t scratch_bytes() const override { return weights_.scratch_bytes(); }
  bool takes_affine() const override { return true; }
  void Run(const ConvolutionTensors& t) override {
    weights_.Run(t.src, t.src_affine, t.diff_dst, t.diff_weight, t.diff_bias, t.scratch);
  }

 private:
  std::string name_;
  WinogradWeights<Operand> weights_;
};

template <typename Operand>
std::unique_ptr<ConvolutionAlgorithm> Create(const WinogradProblem& winograd,
                                             ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::kForward:
      return std::make_unique<Forward<Operand>>(winograd);
    case ConvolutionDirection::kBackwardData:
      return std::make_unique<BackwardData<Operand>>(winograd);
    case ConvolutionDirection::kBackwardWeights:
      return std::make_unique<BackwardWeights<Operand>>(winograd);
    case ConvolutionDirection::kBackward:
      break;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> CreateWinograd(const ConvolutionProblem& problem,
                                                     ConvolutionDirection direction, int tile) {
  const WinogradProblem winograd{problem, tile};
  if (!winograd.IsSupported()) return nullptr;
  return Create<float>(winograd, direction);
}

std::unique_ptr<ConvolutionAlgorithm> CreateWinogradBf16(const ConvolutionProblem& problem,
                                                         ConvolutionDirection direction) {
  const WinogradProblem winograd{problem, /*tile=*/2};
  if (!winograd.SupportsBf16()) return nullptr;
  return Create<Bfloat16>(winograd, direction);
}

}  // namespace ringtail
