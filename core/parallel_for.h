// A parallel loop on OpenMP's team, which oneDNN uses, too (two pools would oversubscribe the
// cores). Call it from the trainer thread only.
//
//   ParallelFor(count, kMinFloatsPerThread, [&](int64_t begin, int64_t end) { ... });
//
// The ranges are a pure function of (count, grain, threads): no work stealing, so a reduction with
// one slot per range gives the same bits in every run. `fn` must not throw. Thread-safety: the
// trainer thread. Cost: one fork and join of the team (a few microseconds) unless there is only one
// range; no allocation.
#ifndef RINGTAIL_CORE_PARALLEL_FOR_H_
#define RINGTAIL_CORE_PARALLEL_FOR_H_

#include <atomic>
#include <cstdint>
#include <memory>

namespace ringtail {

int NumComputeThreads();           // the most threads that the next loop will use
void SetNumComputeThreads(int n);  // n >= 1; for oneDNN's primitives, too

namespace internal {
// `fn` without its type, so that the loop is compiled once and nothing is copied to the heap.
using RangeFunction = void (*)(const void* fn, int64_t begin, int64_t end);
void ParallelForRanges(int64_t count, int64_t grain, RangeFunction call, const void* fn);
}  // namespace internal

// Calls fn(begin, end) for ranges that cover [0, count) once: at most NumComputeThreads() of them,
// each of at least `grain` unless count is smaller. Nothing happens if count <= 0.
template <typename Fn>
void ParallelFor(int64_t count, int64_t grain, const Fn& fn) {
  const auto call = [](const void* object, int64_t begin, int64_t end) {
    (*static_cast<const Fn*>(object))(begin, end);
  };
  internal::ParallelForRanges(count, grain, call, std::addressof(fn));
}

// Calls fn(i, thread) once for each i in [0, count): a thread that is free takes the next one. Which
// that is, below NumComputeThreads(), differs from run to run: it may choose working memory, but no
// result. All threads enter the loop even if there is a single index, so that a library that `fn`
// calls stays on its thread (core/matrix_product.h).
template <typename Fn>
void ParallelForEach(int64_t count, const Fn& fn) {
  std::atomic<int64_t> next = 0;
  ParallelFor(NumComputeThreads(), 1, [&](int64_t thread, int64_t) {
    for (int64_t i = next++; i < count; i = next++) fn(i, thread);
  });
}

}  // namespace ringtail

#endif  // RINGTAIL_CORE_PARALLEL_FOR_H_
