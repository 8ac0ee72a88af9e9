// How convolutions divide their work: into blocks of equal size, and among threads that need memory
// of their own. Thread-safety: the trainer thread.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WORK_DIVISION_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WORK_DIVISION_H_

#include <algorithm>
#include <cstdint>

#include "core/parallel_for.h"
#include "core/round.h"

namespace ringtail {

// The size of equal blocks that cover n: whole groups, at most `most` or one group.
constexpr int64_t EqualBlocks(int64_t n, int64_t most, int64_t group) {
  const int64_t blocks = CeilDivide(n, std::max(most, group));
  return RoundUp(CeilDivide(n, blocks), group);
}

// Calls work(thread) once for each of 0 .. threads - 1: `thread` tells which share of a scratch to
// use, whichever thread of the team makes the call.
template <typename Work>
void ForEachThread(int64_t threads, const Work& work) {
  ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) work(thread);
  });
}

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WORK_DIVISION_H_
