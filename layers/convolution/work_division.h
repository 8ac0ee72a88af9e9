// How convolutions divide their work: into blocks of equal size, and among threads that need memory
// of their own.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WORK_DIVISION_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WORK_DIVISION_H_

#include <algorithm>
#include <cstdint>

#include "core/parallel_for.h"

namespace ringtail {

// Rounded up; n >= 0, by > 0.
constexpr int64_t CeilDivide(int64_t n, int64_t by) { return (n + by - 1) / by; }

// The size of equal blocks that cover n: whole groups, at most `most` or one group.
constexpr int64_t EqualBlocks(int64_t n, int64_t most, int64_t group) {
  const int64_t blocks = CeilDivide(n, std::max(most, group));
  return CeilDivide(CeilDivide(n, blocks), group) * group;
}

// Calls work(thread) for 0 .. threads - 1, each once, so that `thread` can say which part of a
// scratch is whose. Which thread of the team makes the call does not matter.
template <typename Work>
void ForEachThread(int64_t threads, const Work& work) {
  ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) work(thread);
  });
}

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WORK_DIVISION_H_
