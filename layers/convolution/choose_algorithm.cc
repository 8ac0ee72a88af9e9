#include "layers/convolution/choose_algorithm.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/aligned_buffer.h"
#include "core/cpu_model.h"
#include "core/memory_limit.h"
#include "core/parallel_for.h"
#include "layers/convolution/depthwise_convolution.h"
#include "layers/convolution/onednn_convolution.h"
#include "layers/convolution/winograd_convolution.h"
#include "layers/convolution/winograd_strided_convolution.h"
#include "layers/kernels/kernels.h"
#include "layers/onednn_version.h"

namespace ringtail {
namespace {

using Candidates = std::vector<std::unique_ptr<ConvolutionAlgorithm>>;
using Direction = ConvolutionDirection;

// To be raised when the speed of our kernels changes: older choices are then measured again.
constexpr int kKernelsVersion = 1;
// Rounds of one call of each candidate: at least and at most, and no more after so long. Calls of
// microseconds are repeated more often, because a disturbance may outlast several of them.
constexpr int kMinRounds = 3, kMaxRounds = 12;
constexpr double kSecondsForRounds = 0.04;
constexpr double kHopeless = 1.3;  // times the best: not called again

const char* PolicyAlgorithm(ConvolutionPolicy policy) {
  if (policy == WINOGRAD_4X4) return "winograd 4x4";
  if (policy == WINOGRAD_2X2) return "winograd 2x2";
  return "";
}

// The tensors of a problem, filled with something harmless.
class ProblemMemory {
 public:
  ProblemMemory(const ConvolutionProblem& p, size_t scratch_bytes)
      : src_(p.src.bytes()),
        dst_(p.dst.bytes()),
        weight_(WeightBytes(p)),
        bias_(static_cast<size_t>(p.dst.C) * sizeof(float)),
        scratch_(scratch_bytes),
        has_bias_(p.bias) {
    for (AlignedBuffer* buffer : {&src_, &dst_, &weight_}) {
      std::ranges::fill(buffer->floats(), 0.5F);
    }
  }

  static size_t WeightBytes(const ConvolutionProblem& p) {
    return p.dst.C * (p.src.C / p.groups) * p.window.KH * p.window.KW * sizeof(float);
  }
  static size_t Bytes(const ConvolutionProblem& p, size_t scratch_bytes) {
    return p.src.bytes() + p.dst.bytes() + WeightBytes(p) + scratch_bytes;
  }

  ConvolutionTensors Tensors(Direction direction) {
    float *src = src_.floats().data(), *dst = dst_.floats().data(),
          *weight = weight_.floats().data(), *bias = has_bias_ ? bias_.floats().data() : nullptr;
    ConvolutionTensors t{.scratch = scratch_.data()};
    switch (direction) {
      case Direction::kForward:
        t.src = src, t.weight = weight, t.bias = bias, t.dst = dst;
        break;
      case Direction::kBackwardData:
        t.diff_dst = dst, t.weight = weight, t.diff_src = src;
        break;
      case Direction::kBackwardWeights:
        t.src = src, t.diff_dst = dst, t.diff_weight = weight, t.diff_bias = bias;
        break;
    }
    return t;
  }

 private:
  AlignedBuffer src_, dst_, weight_, bias_, scratch_;
  bool has_bias_;
};

double Seconds(ConvolutionAlgorithm* algorithm, const ConvolutionTensors& tensors) {
  const auto begin = std::chrono::steady_clock::now();
  algorithm->Run(tensors);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

size_t MostScratch(const Candidates& candidates) {
  size_t bytes = 0;
  for (const auto& candidate : candidates) bytes = std::max(bytes, candidate->scratch_bytes());
  return bytes;
}

// The least time of each candidate: what disturbs a machine only ever adds.
AlgorithmChoice Measure(const Candidates& candidates, ProblemMemory* memory, Direction direction) {
  const ConvolutionTensors tensors = memory->Tensors(direction);
  std::vector<double> least(candidates.size(), std::numeric_limits<double>::infinity());
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  for (const auto& candidate : candidates) candidate->Run(tensors);  // touches memory and code
  for (int round = 0; round < kMaxRounds; ++round) {
    if (round >= kMinRounds && spent > kSecondsForRounds) break;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (round > 0 && least[i] > kHopeless * best) continue;
      const double seconds = Seconds(candidates[i].get(), tensors);
      spent += seconds;
      least[i] = std::min(least[i], seconds);
      best = std::min(best, least[i]);
    }
  }
  AlgorithmChoice choice;
  for (size_t i = 0; i < candidates.size(); ++i) {
    choice.seconds[candidates[i]->name()] = least[i];
    if (least[i] == best) choice.algorithm = candidates[i]->name();
  }
  return choice;
}

// The candidate of that name; null: none.
std::unique_ptr<ConvolutionAlgorithm> Take(Candidates* candidates, const std::string& name) {
  for (auto& candidate : *candidates) {
    if (candidate->name() == name) return std::move(candidate);
  }
  return nullptr;
}

}  // namespace

const char* DirectionName(Direction direction) {
  switch (direction) {
    case Direction::kForward:
      return "forward";
    case Direction::kBackwardData:
      return "backward-data";
    case Direction::kBackwardWeights:
      break;
  }
  return "backward-weights";
}

Candidates ConvolutionCandidates(const ConvolutionProblem& problem, Direction direction) {
  Candidates candidates;
  const auto add = [&](std::unique_ptr<ConvolutionAlgorithm> candidate) {
    if (candidate) candidates.push_back(std::move(candidate));
  };
  add(CreateOneDnnConvolution(problem, direction));
  add(CreateWinograd(problem, direction, /*tile=*/4));
  add(CreateWinograd(problem, direction, /*tile=*/2));
  add(CreateWinogradStrided(problem, direction));
  add(CreateDepthwise(problem, direction));
  return candidates;
}

std::string ChoiceKey(const ConvolutionProblem& p, Direction direction) {
  const Window& w = p.window;
  return fmt::format(
      "{}, {}, {} threads, oneDNN {}, kernels {}; {} {}:{} to {}:{}, window {}x{}, stride {} {}, "
      "padding {} {} {} {}, dilation {} {}, groups {}{}{}",
      CpuModel(), KernelIsaName(SelectedKernelIsa()), NumComputeThreads(), OneDnnVersion(),
      kKernelsVersion, DirectionName(direction), p.src.ShapeString(), p.src.block,
      p.dst.ShapeString(), p.dst.block, w.KH, w.KW, w.SH, w.SW, w.PT, w.PL, w.PB, w.PR, w.DH, w.DW,
      p.groups, p.bias ? ", bias" : "", p.activation != Activation::kNone ? ", activation" : "");
}

std::unique_ptr<ConvolutionAlgorithm> ChooseAlgorithm(const ConvolutionProblem& problem,
                                                      Direction direction,
                                                      ConvolutionPolicy policy,
                                                      AlgorithmChoices* choices) {
  Candidates candidates = ConvolutionCandidates(problem, direction);
  if (policy != FASTEST) {
    auto wanted = Take(&candidates, PolicyAlgorithm(policy));
    return wanted ? std::move(wanted) : std::move(candidates.front());
  }
  if (candidates.size() == 1) return std::move(candidates.front());

  const std::string key = ChoiceKey(problem, direction);
  if (const AlgorithmChoice* known = choices->Find(key)) {
    if (auto chosen = Take(&candidates, known->algorithm)) return chosen;
  }
  const size_t scratch = MostScratch(candidates);
  // A net too large for the machine is refused where all its memory is known.
  if (!CheckMemoryAvailable(ProblemMemory::Bytes(problem, scratch), "measuring").ok()) {
    return std::move(candidates.front());
  }
  ProblemMemory memory(problem, scratch);
  const AlgorithmChoice choice = Measure(candidates, &memory, direction);
  choices->Add(key, choice);
  return Take(&candidates, choice.algorithm);
}

}  // namespace ringtail
