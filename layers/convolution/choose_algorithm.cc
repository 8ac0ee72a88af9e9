#include "layers/convolution/choose_algorithm.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/kernel_isa.h"
#include "core/machine/cpu_model.h"
#include "core/parallel_for.h"
#include "layers/convolution/candidates.h"
#include "layers/convolution/measure_algorithms.h"
#include "layers/convolution/separate_backward.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;

// Whether a choice was made among all of today's candidates: there may be a new one.
bool HasMeasured(const AlgorithmChoice& choice, const ConvolutionCandidates& candidates) {
  return std::ranges::all_of(candidates, [&](const auto& candidate) {
    return choice.seconds.contains(candidate->name());
  });
}

// The candidate of that name; null: none.
std::unique_ptr<ConvolutionAlgorithm> Take(ConvolutionCandidates* candidates,
                                           const std::string& name) {
  for (auto& candidate : *candidates) {
    if (candidate->name() == name) return std::move(candidate);
  }
  return nullptr;
}

// "16"; "16 bf16".
std::string Layout(const BlobDesc& desc) {
  const std::string block = std::to_string(desc.block);
  return desc.type == BlobType::kF32 ? block : block + " " + BlobTypeName(desc.type);
}

}  // namespace

const char* DirectionName(Direction direction) {
  switch (direction) {
    case Direction::kForward:
      return "forward";
    case Direction::kBackwardData:
      return "backward-data";
    case Direction::kBackwardWeights:
      return "backward-weights";
    case Direction::kBackward:
      break;
  }
  return "backward";
}

std::string ChoiceKey(const ConvolutionProblem& p, Direction direction) {
  const Window& w = p.window;
  return fmt::format(
      "{}, {}, {} threads; {} {}:{} to {}:{}, window {}x{}, stride {} {}, padding {} {} {} {}, "
      "dilation {} {}, groups {}{}{}{}{}{}",
      CpuModel(), KernelIsaName(SelectedKernelIsa()), NumComputeThreads(), DirectionName(direction),
      p.src.ShapeString(), Layout(p.src), p.dst.ShapeString(), Layout(p.dst), w.KH, w.KW, w.SH,
      w.SW, w.PT, w.PL, w.PB, w.PR, w.DH, w.DW, p.groups, p.bias ? ", bias" : "",
      p.activation != Activation::kNone ? ", activation" : "",
      p.src_is_affine ? ", affine src" : "",
      p.dst_is_normalized && (direction == Direction::kForward || direction == Direction::kBackward)
          ? ", normalized dst"
          : "",
      // (The word of caches and checkpoints of before.)
      p.diff_src_is_sum && WritesDiffSrc(direction) ? ", begun diff_src" : "");
}

std::unique_ptr<ConvolutionAlgorithm> ChooseAlgorithm(const ConvolutionProblem& problem,
                                                      Direction direction, ConvolutionPolicy policy,
                                                      bool measure, AlgorithmChoices* choices) {
  ConvolutionCandidates candidates = FindCandidates(problem, direction);
  if (direction == Direction::kBackward) {
    const auto choose = [&](Direction half) {
      return ChooseAlgorithm(problem, half, policy, measure, choices);
    };
    candidates.insert(candidates.begin(),
                      std::make_unique<SeparateBackward>(choose(Direction::kBackwardWeights),
                                                         choose(Direction::kBackwardData)));
  }
  if (policy != FASTEST) return TakeForced(&candidates, policy, direction);
  if (candidates.size() == 1) return std::move(candidates.front());

  const std::string key = ChoiceKey(problem, direction);
  const AlgorithmChoice* known = choices->Find(key);
  if (known != nullptr && (choices->IsKept(key) || !measure || HasMeasured(*known, candidates))) {
    if (auto chosen = Take(&candidates, known->algorithm)) return chosen;
  }
  if (!measure) return std::move(candidates.front());
  // A net too large for the machine is refused where all its memory is known.
  if (!CanMeasure(candidates, problem, direction)) {
    choices->Keep(key, {.algorithm = candidates.front()->name(), .seconds = {}});
    return std::move(candidates.front());
  }
  const AlgorithmChoice choice = MeasureAlgorithms(candidates, problem, direction);
  choices->Add(key, choice);
  return Take(&candidates, choice.algorithm);
}

}  // namespace ringtail
