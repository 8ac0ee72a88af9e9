#include "core/machine/busy_threads.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "core/aligned_buffer.h"
#include "core/machine/processor_time.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

constexpr size_t kBytes = 2 << 20;

// Values tend to 1: never subnormal, which would be slow.
void PassOver(int64_t n, float* values) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) values[i] = 0.5F * values[i] + 0.5F;
}

}  // namespace

BusyThreads::BusyThreads(int count) {
  for (int i = 0; i < count; ++i) {
    threads_.emplace_back([this] {
      SetThreadName("rt-busy");
      const AlignedBuffer memory(kBytes);
      std::ranges::fill(memory.floats(), 0.0F);
      while (!stop_) PassOver(std::ssize(memory.floats()), memory.floats().data());
    });
  }
}

BusyThreads::~BusyThreads() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
}

double BusyThreads::Seconds() {
  double sum = 0;
  for (std::thread& thread : threads_) sum += SecondsOfThread(thread);
  return sum;
}

}  // namespace ringtail
