#include "layers/convolution/measure_algorithms.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "core/machine/memory_limit.h"
#include "core/stop_signal.h"
#include "layers/convolution/measuring_notice.h"
#include "layers/convolution/neighbour_costs.h"
#include "layers/convolution/problem_memory.h"

namespace ringtail {
namespace {

// Rounds of one call of each candidate: at least and at most, and no more after so long. Calls of
// microseconds are repeated more often, because a disturbance may outlast several of them.
constexpr int kMinRounds = 4, kMaxRounds = 12;
constexpr double kSecondsForRounds = 0.08;
constexpr double kSecondsAtMost = 1;  // after which not even the minimum is done

// How many times the best time a candidate may take before `round` and is called once more. A call that
// another program disturbs takes twice as long and more: one alone does not rule a candidate out.
double MostTimesTheBest(int round) {
  constexpr double kOfOneCall = 3, kOfTwoCalls = 1.8, kOfMore = 1.3;
  return round == 2 ? kOfOneCall : round == 3 ? kOfTwoCalls : kOfMore;
}

size_t MostScratch(const ConvolutionCandidates& candidates) {
  size_t bytes = 0;
  for (const auto& candidate : candidates) bytes = std::max(bytes, candidate->scratch_bytes());
  return bytes;
}

double SecondsOf(ConvolutionAlgorithm* candidate, const ConvolutionTensors& tensors) {
  const auto begin = std::chrono::steady_clock::now();
  candidate->Run(tensors);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The least time of each candidate: a disturbance only ever adds time. The first round touches
// memory and code, and counts only where there is no time for a second.
std::vector<double> LeastSeconds(const ConvolutionCandidates& candidates,
                                 const ConvolutionProblem& problem, ConvolutionDirection direction,
                                 ProblemMemory* memory) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const NeighbourCosts neighbours(problem, direction, memory);
  std::vector<double> least(candidates.size(), kInfinity);
  double best = kInfinity, spent = 0;
  for (int round = 0; round <= kMaxRounds; ++round) {
    if (spent > kSecondsAtMost || (round > kMinRounds && spent > kSecondsForRounds)) break;
    if (round == 1) {
      std::ranges::fill(least, kInfinity);
      best = kInfinity;
    }
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (round > 1 && least[i] > MostTimesTheBest(round) * best) continue;
      if (StopSignal() != 0) throw MeasuringStopped();
      const double seconds =
          SecondsOf(candidates[i].get(), memory->Tensors(direction, *candidates[i]));
      spent += seconds;
      least[i] = std::min(least[i], seconds + neighbours.SecondsLeftBy(*candidates[i]));
      best = std::min(best, least[i]);
    }
  }
  return least;
}

}  // namespace

bool CanMeasure(const ConvolutionCandidates& candidates, const ConvolutionProblem& problem,
                ConvolutionDirection direction) {
  const size_t bytes = ProblemMemory::Bytes(problem, direction, MostScratch(candidates));
  return CheckMemoryAvailable(2 * bytes, "measuring").ok();
}

AlgorithmChoice MeasureAlgorithms(const ConvolutionCandidates& candidates,
                                  const ConvolutionProblem& problem,
                                  ConvolutionDirection direction) {
  std::vector<double> least;
  {
    ProblemMemory memory(problem, direction, MostScratch(candidates));
    least = LeastSeconds(candidates, problem, direction, &memory);
  }
  malloc_trim(0);  // or the heap would keep the memory, beside that of the net
  const double best = *std::ranges::min_element(least);
  AlgorithmChoice choice;
  for (size_t i = 0; i < candidates.size(); ++i) {
    choice.seconds[candidates[i]->name()] = least[i];
    if (least[i] == best) choice.algorithm = candidates[i]->name();
  }
  NoticeMeasured();
  return choice;
}

}  // namespace ringtail
