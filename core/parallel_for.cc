#include "core/parallel_for.h"

#include <omp.h>

#include <algorithm>

#include "core/check.h"

namespace ringtail {

int NumComputeThreads() { return omp_get_max_threads(); }

void SetNumComputeThreads(int n) {
  RT_CHECK(n >= 1, "compute threads must be at least 1");
  omp_set_num_threads(n);
}

void ParallelFor(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& fn) {
  if (count <= 0) return;
  const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, NumComputeThreads());
  if (parts == 1) return fn(0, count);
#pragma omp parallel for num_threads(static_cast<int>(parts)) schedule(static, 1)
  for (int64_t i = 0; i < parts; ++i) fn(count * i / parts, count * (i + 1) / parts);
}

}  // namespace ringtail
