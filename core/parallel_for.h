// A parallel loop over OpenMP's team, the one that oneDNN uses, too (two pools would oversubscribe the
// cores). Call it from the trainer thread only.
//
// fn(begin, end) gets ranges that are a pure function of (count, grain, threads): no work stealing, so a
// reduction with one slot per range gives the same bits in every run.
#ifndef RINGTAIL_CORE_PARALLEL_FOR_H_
#define RINGTAIL_CORE_PARALLEL_FOR_H_

#include <cstdint>
#include <functional>

namespace ringtail {

int NumComputeThreads();           // what the next loop will use at most
void SetNumComputeThreads(int n);  // n >= 1; for oneDNN's primitives, too

// Splits [0, count) into at most NumComputeThreads() ranges of at least `grain` (except the last).
void ParallelFor(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& fn);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_PARALLEL_FOR_H_
