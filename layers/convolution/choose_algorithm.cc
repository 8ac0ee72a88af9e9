#include "layers/convolution/choose_algorithm.h"

#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <string_view>

#include "core/aligned_buffer.h"
#include "core/check.h"
#include "core/kernel_isa.h"
#include "core/machine/cpu_model.h"
#include "core/machine/memory_limit.h"
#include "core/parallel_for.h"
#include "core/stop_signal.h"
#include "layers/convolution/depthwise_convolution.h"
#include "layers/convolution/onednn_convolution.h"
#include "layers/convolution/pointwise/pointwise_convolution.h"
#include "layers/convolution/separate_backward.h"
#include "layers/convolution/winograd/winograd_convolution.h"
#include "layers/convolution/winograd/winograd_strided_convolution.h"
#include "layers/kernels/batch_norm.h"
#include "layers/kernels/elementwise.h"
#include "layers/parallel_blobs.h"

namespace ringtail {
namespace {

using Candidates = std::vector<std::unique_ptr<ConvolutionAlgorithm>>;
using Direction = ConvolutionDirection;

// Rounds of one call of each candidate: at least and at most, and no more after so long. Calls of
// microseconds are repeated more often, because a disturbance may outlast several of them.
constexpr int kMinRounds = 4, kMaxRounds = 12;
constexpr double kSecondsForRounds = 0.08;
constexpr double kSecondsAtMost = 1;  // after which not even the minimum is done
constexpr double kHopeless = 1.3;     // times the best: not called again
constexpr int64_t kLargestBlock = 16;

// The name of the algorithm that a config asks for, without the instruction set that may follow
// (":avx512"); "": oneDNN's, whatever their names.
std::string_view PolicyAlgorithm(ConvolutionPolicy policy) {
  switch (policy) {
    case FASTEST:
    case ONEDNN:
      return "";
    case WINOGRAD_4X4:
      return "winograd 4x4";
    case WINOGRAD_2X2:
      return "winograd 2x2";
    case WINOGRAD_STRIDE_2:
      return "winograd stride 2";
    case DEPTHWISE:
    case DEPTHWISE_SEPARATE:
      return "depthwise";
    case POINTWISE:
    case POINTWISE_SEPARATE:
      return "pointwise";
  }
  RT_CHECK(false, "no such policy");
}

// Whether each gradient is to have a pass of its own though the algorithm could do both in one.
bool IsSeparate(ConvolutionPolicy policy) {
  return policy == DEPTHWISE_SEPARATE || policy == POINTWISE_SEPARATE;
}

bool WritesDiffSrc(Direction direction) {
  return direction == Direction::kBackwardData || direction == Direction::kBackward;
}

// The tensors of a problem, filled with something harmless; its batch norms map values to
// themselves.
class ProblemMemory {
 public:
  ProblemMemory(const ConvolutionProblem& p, Direction direction, size_t scratch_bytes)
      : problem_(p),
        src_(p.src.bytes()),
        dst_(p.dst.bytes()),
        more_src_(HasMoreSrc(p, direction) ? p.src.bytes() : 0),
        weight_(WeightBytes(p)),
        diff_weight_(direction == Direction::kBackward ? WeightBytes(p) : 0),
        bias_(static_cast<size_t>(p.dst.C) * sizeof(float)),
        scratch_(scratch_bytes),
        zeros_(MostChannels(p), 0.0F),
        ones_(MostChannels(p), 1.0F) {
    for (AlignedBuffer* buffer : {&src_, &dst_, &weight_}) {
      std::ranges::fill(buffer->floats(), 0.5F);
    }
  }

  static size_t WeightBytes(const ConvolutionProblem& p) {
    return p.dst.C * (p.src.C / p.groups) * p.window.KH * p.window.KW * sizeof(float);
  }
  static size_t Bytes(const ConvolutionProblem& p, Direction direction, size_t scratch_bytes) {
    const int more = HasMoreSrc(p, direction) ? 1 : 0;
    return p.dst.bytes() + (1 + more) * (p.src.bytes() + WeightBytes(p)) + scratch_bytes;
  }

  ChannelAffine affine() const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return {zeros_.data(), ones_.data(), zeros_.data(), -kInfinity, kInfinity};
  }
  float* src() { return src_.floats().data(); }
  float* dst() { return dst_.floats().data(); }
  float* more_src() { return more_src_.floats().data(); }  // diff_src, perhaps to be added to

  // What the candidate is given when it runs in a net.
  ConvolutionTensors Tensors(Direction direction, const ConvolutionAlgorithm& candidate) {
    float *weight = weight_.floats().data(),
          *bias = problem_.bias ? bias_.floats().data() : nullptr;
    ConvolutionTensors t{.scratch = scratch_.data()};
    if (direction != Direction::kBackwardData && problem_.src_is_affine &&
        candidate.takes_affine()) {
      t.src_affine = affine();
    }
    t.add_to_diff_src =
        WritesDiffSrc(direction) && problem_.diff_src_is_begun && candidate.adds_to_diff_src();
    switch (direction) {
      case Direction::kForward:
        t.src = src(), t.weight = weight, t.bias = bias, t.dst = dst();
        if (problem_.dst_is_normalized) t.dst_moments = Moments(candidate.moments_pixels());
        break;
      case Direction::kBackwardData:
        t.diff_dst = dst(), t.weight = weight, t.diff_src = src();
        break;
      case Direction::kBackwardWeights:
        t.src = src(), t.diff_dst = dst(), t.diff_weight = weight, t.diff_bias = bias;
        break;
      case Direction::kBackward:
        t.src = src(), t.weight = weight, t.diff_dst = dst();
        t.diff_src = more_src(), t.diff_weight = diff_weight_.floats().data();
        t.diff_bias = bias;
        if (problem_.dst_is_normalized && candidate.takes_gradient_map()) {
          t.diff_dst_map = {dst(), affine(), zeros_.data(), zeros_.data()};
        }
        break;
    }
    if (WritesDiffSrc(direction) && problem_.src_is_affine &&
        candidate.gradient_sums_pixels() > 0) {
      t.src = src(), t.diff_src = more_src(), t.src_affine = affine();
      t.diff_src_sums = Sums(candidate.gradient_sums_pixels());
    }
    return t;
  }

 private:
  // Whether there are src and diff_src, or two diff_src to be added.
  static bool HasMoreSrc(const ConvolutionProblem& p, Direction direction) {
    return direction == Direction::kBackward ||
           (direction == Direction::kBackwardData && (p.diff_src_is_begun || p.src_is_affine));
  }
  static size_t MostChannels(const ConvolutionProblem& p) {
    return std::max(p.src.channel_blocks() * p.src.block, p.dst.channel_blocks() * p.dst.block);
  }

  BlobMoments Moments(int64_t part_pixels) {
    if (part_pixels == 0) return {};
    BlobMoments moments{{.part_pixels = part_pixels}};
    moments.mean = TwoArrays(moments.elements(problem_.dst));
    moments.m2 = moments.mean + moments.elements(problem_.dst);
    return moments;
  }
  BlobGradientSums Sums(int64_t part_pixels) {
    BlobGradientSums sums{{.part_pixels = part_pixels}};
    sums.g = TwoArrays(sums.elements(problem_.src));
    sums.gx = sums.g + sums.elements(problem_.src);
    return sums;
  }
  double* TwoArrays(int64_t elements) {
    of_parts_.resize(2 * elements);
    return of_parts_.data();
  }

  const ConvolutionProblem& problem_;
  AlignedBuffer src_, dst_, more_src_, weight_, diff_weight_, bias_, scratch_;
  std::vector<float> zeros_, ones_;
  std::vector<double> of_parts_;
};

template <typename Function>
double Seconds(const Function& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The least time of fn(i) for all channel blocks i of the blob.
template <typename Function>
double LeastSeconds(const BlobDesc& desc, const Function& fn) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kMinRounds; ++round) {
    least = std::min(least, Seconds([&] { ForEachChannelBlock(desc, fn); }));
  }
  return least;
}

// What the batch norms before and behind a convolution, and the net, do if its algorithm does not.
struct SecondsOfNeighbours {
  double to_write_src = 0, to_take_moments = 0, to_write_diff_dst = 0, to_take_sums = 0,
         to_add_diff_src = 0;

  SecondsOfNeighbours(const ConvolutionProblem& p, Direction direction, ProblemMemory* memory) {
    const ChannelAffine affine = memory->affine();
    const auto plane = [](const BlobDesc& desc, float* blob, int64_t i) {
      return blob + i * desc.plane() * desc.block;
    };
    if (p.src_is_affine && direction != Direction::kBackwardData) {
      to_write_src = LeastSeconds(p.src, [&](int64_t i) {
        float* at = plane(p.src, memory->src(), i);
        RT_KERNEL(BatchNormApply)(at, p.src.plane(), p.src.block, affine, at);
      });
    }
    if (p.dst_is_normalized && direction == Direction::kForward) {
      to_take_moments = LeastSeconds(p.dst, [&](int64_t i) {
        std::array<double, kLargestBlock> mean, m2;
        RT_KERNEL(BatchNormMoments)
        (plane(p.dst, memory->dst(), i), p.dst.plane(), p.dst.block, mean.data(), m2.data());
      });
    }
    if (p.dst_is_normalized && direction == Direction::kBackward) {
      const float* zeros = affine.bias;
      to_write_diff_dst = LeastSeconds(p.dst, [&](int64_t i) {
        float* at = plane(p.dst, memory->dst(), i);
        RT_KERNEL(BatchNormGradient)
        (at, at, p.dst.plane(), p.dst.block, affine, zeros, zeros, at);
      });
    }
    if (p.src_is_affine && WritesDiffSrc(direction)) {
      to_take_sums = LeastSeconds(p.src, [&](int64_t i) {
        std::array<double, kLargestBlock> g, gx;
        RT_KERNEL(BatchNormGradientSums)
        (plane(p.src, memory->src(), i), plane(p.src, memory->more_src(), i), p.src.plane(),
         p.src.block, affine, g.data(), gx.data());
      });
    }
    if (p.diff_src_is_begun && WritesDiffSrc(direction)) {
      to_add_diff_src = LeastSeconds(p.src, [&](int64_t i) {
        RT_KERNEL(AddInto)
        (plane(p.src, memory->src(), i), plane(p.src, memory->more_src(), i),
         p.src.plane() * p.src.block);
      });
    }
  }

  double For(const ConvolutionAlgorithm& candidate) const {
    return (candidate.takes_affine() ? 0 : to_write_src) +
           (candidate.moments_pixels() > 0 ? 0 : to_take_moments) +
           (candidate.takes_gradient_map() ? 0 : to_write_diff_dst) +
           (candidate.gradient_sums_pixels() > 0 ? 0 : to_take_sums) +
           (candidate.adds_to_diff_src() ? 0 : to_add_diff_src);
  }
};

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
  const SecondsOfNeighbours neighbours(problem, direction, memory);
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
      if (StopSignal() != 0) throw MeasuringStopped();
      const ConvolutionTensors tensors = memory->Tensors(direction, *candidates[i]);
      const double seconds = Seconds([&] { candidates[i]->Run(tensors); });
      spent += seconds;
      least[i] = std::min(least[i], seconds + neighbours.For(*candidates[i]));
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
    ProblemMemory memory(problem, direction, scratch_bytes);
    choice = Measure(candidates, problem, &memory, direction);
  }
  malloc_trim(0);  // or the heap would keep the memory, beside that of the net
  return choice;
}

// What a config asks for, where there is such a candidate; else oneDNN's.
std::unique_ptr<ConvolutionAlgorithm> TakeForced(Candidates* candidates, ConvolutionPolicy policy,
                                                 Direction direction) {
  const std::string_view wanted = PolicyAlgorithm(policy);
  const bool only_halves = direction == Direction::kBackward && IsSeparate(policy);
  for (auto& candidate : *candidates) {
    const std::string name = candidate->name();
    if (!wanted.empty() && !only_halves && name.substr(0, name.find(':')) == wanted) {
      return std::move(candidate);
    }
  }
  return std::move(candidates->front());
}

// Whether a choice was made among all of today's candidates: there may be a new one.
bool HasMeasured(const AlgorithmChoice& choice, const Candidates& candidates) {
  return std::ranges::all_of(candidates, [&](const auto& candidate) {
    return choice.seconds.contains(candidate->name());
  });
}

// The candidate of that name; null: none.
std::unique_ptr<ConvolutionAlgorithm> Take(Candidates* candidates, const std::string& name) {
  for (auto& candidate : *candidates) {
    if (candidate->name() == name) return std::move(candidate);
  }
  return nullptr;
}

// Those that are not oneDNN's.
Candidates OwnCandidates(const ConvolutionProblem& problem, Direction direction) {
  Candidates candidates;
  const auto add = [&](std::unique_ptr<ConvolutionAlgorithm> candidate) {
    if (candidate) candidates.push_back(std::move(candidate));
  };
  add(CreateWinograd(problem, direction, /*tile=*/4));
  add(CreateWinograd(problem, direction, /*tile=*/2));
  add(CreateWinogradStrided(problem, direction));
  add(CreateDepthwise(problem, direction));
  add(CreatePointwise(problem, direction));
  return candidates;
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

Candidates ConvolutionCandidates(const ConvolutionProblem& problem, Direction direction) {
  Candidates candidates = OwnCandidates(problem, direction);
  if (auto onednn = CreateOneDnnConvolution(problem, direction)) {
    candidates.insert(candidates.begin(), std::move(onednn));
  }
  return candidates;
}

int64_t OutputBlock(const ConvolutionProblem& problem) {
  const OneDnnOutput output = OneDnnOutputOf(problem);
  if (output.is_fast) return output.block;
  ConvolutionProblem as_src = problem;
  as_src.dst.block = problem.src.block;
  return OwnCandidates(as_src, Direction::kForward).empty() ? output.block : as_src.dst.block;
}

std::string ChoiceKey(const ConvolutionProblem& p, Direction direction) {
  const Window& w = p.window;
  return fmt::format(
      "{}, {}, {} threads; {} {}:{} to {}:{}, window {}x{}, stride {} {}, padding {} {} {} {}, "
      "dilation {} {}, groups {}{}{}{}{}{}",
      CpuModel(), KernelIsaName(SelectedKernelIsa()), NumComputeThreads(), DirectionName(direction),
      p.src.ShapeString(), p.src.block, p.dst.ShapeString(), p.dst.block, w.KH, w.KW, w.SH, w.SW,
      w.PT, w.PL, w.PB, w.PR, w.DH, w.DW, p.groups, p.bias ? ", bias" : "",
      p.activation != Activation::kNone ? ", activation" : "",
      p.src_is_affine ? ", affine src" : "",
      p.dst_is_normalized && (direction == Direction::kForward || direction == Direction::kBackward)
          ? ", normalized dst"
          : "",
      p.diff_src_is_begun && WritesDiffSrc(direction) ? ", begun diff_src" : "");
}

std::unique_ptr<ConvolutionAlgorithm> ChooseAlgorithm(const ConvolutionProblem& problem,
                                                      Direction direction, ConvolutionPolicy policy,
                                                      bool measure, AlgorithmChoices* choices) {
  Candidates candidates = ConvolutionCandidates(problem, direction);
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
  const size_t scratch = MostScratch(candidates);
  // A net too large for the machine is refused where all its memory is known.
  if (!CheckMemoryAvailable(2 * ProblemMemory::Bytes(problem, direction, scratch), "measuring")
           .ok()) {
    choices->Keep(key, {.algorithm = candidates.front()->name(), .seconds = {}});
    return std::move(candidates.front());
  }
  const AlgorithmChoice choice = MeasureOnce(candidates, problem, scratch, direction);
  choices->Add(key, choice);
  return Take(&candidates, choice.algorithm);
}

}  // namespace ringtail
