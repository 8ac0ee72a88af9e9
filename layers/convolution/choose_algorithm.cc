#include "layers/convolution/choose_algorithm.h"

#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/aligned_buffer.h"
#include "core/cpu_model.h"
#include "core/memory_limit.h"
#include "core/parallel_for.h"
#include "layers/convolution/depthwise_convolution.h"
#include "layers/convolution/onednn_convolution.h"
#include "layers/convolution/pointwise_convolution.h"
#include "layers/convolution/winograd_convolution.h"
#include "layers/convolution/winograd_strided_convolution.h"
#include "layers/kernels/batch_norm.h"
#include "layers/kernels/kernels.h"
#include "layers/parallel_blobs.h"

namespace ringtail {
namespace {

using Candidates = std::vector<std::unique_ptr<ConvolutionAlgorithm>>;
using Direction = ConvolutionDirection;

// Rounds of one call of each candidate: at least and at most, and no more after so long. Calls of
// microseconds are repeated more often, because a disturbance may outlast several of them.
constexpr int kMinRounds = 3, kMaxRounds = 12;
constexpr double kSecondsForRounds = 0.04;
constexpr double kSecondsAtMost = 1;  // after which not even the minimum is done
constexpr double kHopeless = 1.3;     // times the best: not called again

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

  float* src() { return src_.floats().data(); }

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

template <typename Function>
double Seconds(const Function& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// What it takes to map src to where it lies (and back into the same values).
double SecondsToMap(const BlobDesc& desc, float* src) {
  const std::vector<float> zeros(desc.block, 0.0F), ones(desc.block, 1.0F);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const ChannelAffine affine = {zeros.data(), ones.data(), zeros.data(), -kInfinity, kInfinity};
  const int64_t floats = desc.plane() * desc.block;
  double least = kInfinity;
  for (int round = 0; round < kMinRounds; ++round) {
    least = std::min(least, Seconds([&] {
                       ForEachChannelBlock(desc, [&](int64_t i) {
                         float* plane = src + i * floats;
                         RT_KERNEL(BatchNormApply)(plane, desc.plane(), desc.block, affine, plane);
                       });
                     }));
  }
  return least;
}

size_t MostScratch(const Candidates& candidates) {
  size_t bytes = 0;
  for (const auto& candidate : candidates) bytes = std::max(bytes, candidate->scratch_bytes());
  return bytes;
}

// The least time of each candidate: what disturbs a machine only ever adds. The first round touches
// memory and code, and counts only where there is no time for a second.
AlgorithmChoice Measure(const Candidates& candidates, const ConvolutionProblem& problem,
                        ProblemMemory* memory, Direction direction) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const ConvolutionTensors tensors = memory->Tensors(direction);
  const bool maps = problem.src_is_affine && direction != Direction::kBackwardData;
  const double seconds_to_map = maps ? SecondsToMap(problem.src, memory->src()) : 0;
  std::vector<double> least(candidates.size(), kInfinity);
  double best = kInfinity, spent = 0;
  for (int round = 0; round <= kMaxRounds; ++round) {
    if (spent > kSecondsAtMost || (round > kMinRounds && spent > kSecondsForRounds)) break;
    if (round == 1) {
      std::ranges::fill(least, kInfinity);
      best = kInfinity;
    }
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (round > 1 && least[i] > kHopeless * best) continue;
      const double seconds = Seconds([&] { candidates[i]->Run(tensors); });
      spent += seconds;
      const double for_src = candidates[i]->takes_affine() ? 0 : seconds_to_map;
      least[i] = std::min(least[i], seconds + for_src);
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

AlgorithmChoice MeasureOnce(const Candidates& candidates, const ConvolutionProblem& problem,
                            size_t scratch_bytes, Direction direction) {
  AlgorithmChoice choice;
  {
    ProblemMemory memory(problem, scratch_bytes);
    choice = Measure(candidates, problem, &memory, direction);
  }
  malloc_trim(0);  // or the heap would keep the memory, beside that of the net
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
  add(CreatePointwise(problem, direction));
  return candidates;
}

std::string ChoiceKey(const ConvolutionProblem& p, Direction direction) {
  const Window& w = p.window;
  return fmt::format(
      "{}, {}, {} threads; {} {}:{} to {}:{}, window {}x{}, stride {} {}, padding {} {} {} {}, "
      "dilation {} {}, groups {}{}{}{}",
      CpuModel(), KernelIsaName(SelectedKernelIsa()), NumComputeThreads(), DirectionName(direction),
      p.src.ShapeString(), p.src.block, p.dst.ShapeString(), p.dst.block, w.KH, w.KW, w.SH, w.SW,
      w.PT, w.PL, w.PB, w.PR, w.DH, w.DW, p.groups, p.bias ? ", bias" : "",
      p.activation != Activation::kNone ? ", activation" : "",
      p.src_is_affine && direction != Direction::kBackwardData ? ", affine src" : "");
}

std::unique_ptr<ConvolutionAlgorithm> ChooseAlgorithm(const ConvolutionProblem& problem,
                                                      Direction direction, ConvolutionPolicy policy,
                                                      bool measure, AlgorithmChoices* choices) {
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
  if (!measure) return std::move(candidates.front());
  const size_t scratch = MostScratch(candidates);
  // A net too large for the machine is refused where all its memory is known.
  if (!CheckMemoryAvailable(2 * ProblemMemory::Bytes(problem, scratch), "measuring").ok()) {
    choices->Keep(key, {.algorithm = candidates.front()->name(), .seconds = {}});
    return std::move(candidates.front());
  }
  const AlgorithmChoice choice = MeasureOnce(candidates, problem, scratch, direction);
  choices->Add(key, choice);
  return Take(&candidates, choice.algorithm);
}

}  // namespace ringtail
