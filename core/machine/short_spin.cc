#include "core/machine/short_spin.h"

#include <omp.h>

#include <algorithm>
#include <atomic>

#include "core/machine/thread_budget.h"

namespace ringtail {

ShortSpin::ShortSpin(int team) {
  // One more than the cores in total; the second team's first thread is its master, not libgomp's.
  const int threads = std::max(2, omp_get_num_procs() - team + 2);
  holder_ = std::thread([this, threads] { Hold(threads); });
  MutexLock lock(&mutex_);
  while (!held_) changed_.Wait(&mutex_);
}

ShortSpin::~ShortSpin() {
  {
    MutexLock lock(&mutex_);
    released_ = true;
  }
  changed_.NotifyAll();
  holder_.join();
}

void ShortSpin::Hold(int threads) {
  SetThreadName("rt-short-spin");
  // libgomp counts a team's threads until the thread that started the team ends. (A region with an
  // empty body would be optimized away.)
  std::atomic<int> met{0};
#pragma omp parallel num_threads(threads)
  met.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(&mutex_);
  held_ = true;
  changed_.NotifyAll();
  while (!released_) changed_.Wait(&mutex_);
}

}  // namespace ringtail
