#include "core/parallel_for.h"

#include <omp.h>

#include <algorithm>

#include "core/check.h"

namespace ringtail {

namespace {

// The sizes of ranges differ by at most one. (count * i / parts could overflow.)
int64_t RangeBegin(int64_t count, int64_t parts, int64_t i) {
  return count / parts * i + std::min(i, count % parts);
}

}  // namespace

int NumComputeThreads() { return omp_get_max_threads(); }

void SetNumComputeThreads(int n) {
  RT_CHECK(n >= 1, "compute threads must be at least 1");
  omp_set_num_threads(n);
}

namespace internal {

void ParallelForRanges(int64_t count, int64_t grain, RangeFunction call, const void* fn) {
  if (count <= 0) return;
  const int64_t parts =
      std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, NumComputeThreads());
  if (parts == 1) return call(fn, 0, count);
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (int64_t i = 0; i < parts; ++i) {
    call(fn, RangeBegin(count, parts, i), RangeBegin(count, parts, i + 1));
  }
}

}  // namespace internal

}  // namespace ringtail
