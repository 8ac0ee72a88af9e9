#include "layers/convolution/measure_algorithms.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/machine/memory_limit.h"
#include "core/stop_signal.h"
#include "layers/convolution/measuring_notice.h"
#include "layers/convolution/measuring_rounds.h"
#include "layers/convolution/neighbour_costs.h"
#include "layers/convolution/problem_memory.h"

namespace ringtail {
namespace {

size_t MostScratch(const ConvolutionCandidates& candidates) {
  size_t bytes = 0;
  for (const auto& candidate : candidates) bytes = std::max(bytes, candidate->scratch_bytes());
  return bytes;
}

// How often a thread of this process has lost its core to another program so far.
int64_t LostCores() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

// Adds a call, which takes `extra` seconds more than it does itself.
double Call(ConvolutionAlgorithm* candidate, const ConvolutionTensors& tensors, double extra,
            Measurement* measurement) {
  const int64_t lost = LostCores();
  const auto begin = std::chrono::steady_clock::now();
  candidate->Run(tensors);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (LostCores() == lost) ++measurement->undisturbed;
  measurement->least = std::min(measurement->least, seconds + extra);
  return seconds;
}

// The least time of each candidate: a disturbance only ever adds time.
std::vector<Measurement> MeasureAll(const ConvolutionCandidates& candidates,
                                    const ConvolutionProblem& problem,
                                    ConvolutionDirection direction, ProblemMemory* memory) {
  const NeighbourCosts neighbours(problem, direction, memory);
  std::vector<Measurement> measurements(candidates.size());
  double spent = 0;
  for (int round = 0; !AreEnough(measurements, round, spent); ++round) {
    if (round == 1) std::ranges::fill(measurements, Measurement());
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!TakesPart(measurements[i], LeastSeconds(measurements), round)) continue;
      if (StopSignal() != 0) throw MeasuringStopped();
      spent += Call(candidates[i].get(), memory->Tensors(direction, *candidates[i]),
                    neighbours.SecondsLeftBy(*candidates[i]), &measurements[i]);
    }
  }
  return measurements;
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
  std::vector<Measurement> measurements;
  {
    ProblemMemory memory(problem, direction, MostScratch(candidates));
    measurements = MeasureAll(candidates, problem, direction, &memory);
  }
  malloc_trim(0);  // or the heap would keep the memory, beside that of the net
  const double best = LeastSeconds(measurements);
  AlgorithmChoice choice;
  for (size_t i = 0; i < candidates.size(); ++i) {
    choice.seconds[candidates[i]->name()] = measurements[i].least;
    if (measurements[i].least == best) choice.algorithm = candidates[i]->name();
  }
  NoticeMeasured();
  return choice;
}

}  // namespace ringtail
