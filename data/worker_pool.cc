#include "data/worker_pool.h"

#include <sys/resource.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/machine/thread_budget.h"
#include "core/machine/thread_limit.h"
#include "core/mutex.h"

namespace ringtail {
namespace {

// A nice step is a factor of 1.25 in processor time: 5 leaves a competing loader thread a quarter
// of a core.
constexpr int kNice = 5;

// The threads that oneTBB may have in total. By default it stops at the number of cores, counting
// the caller. Lives as long as the process: oneTBB takes the lowest of several limits, so one per
// pool would bind the others.
constexpr int kMaxThreads = 256;
void LiftThreadLimitOnce() {
  static const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, kMaxThreads);
}

// Threads of all existing pools, and the most that these have been: oneTBB keeps threads for later
// pools.
std::atomic<int> used_threads = 0, most_threads = 0;

int ThreadsWith(int more) { return std::min(used_threads + more, kMaxThreads - 1); }

// Names the calling thread, a worker of oneTBB, and lowers its priority; once per thread.
void SetUpThread() {
  thread_local bool done = false;
  if (std::exchange(done, true)) return;
  SetThreadName(kLoaderThreads);
  UnbindThread();
  // Relative to the process's first thread, so that a run started with `nice` keeps the distance.
  // Advice: everything works where the system refuses it.
  const int main_nice = getpriority(PRIO_PROCESS, static_cast<id_t>(getpid()));
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), main_nice + kNice);
}

}  // namespace

class WorkerPool::Impl {
 public:
  explicit Impl(int workers) : workers_(workers), arena_(workers, /*reserved_for_masters=*/0) {
    used_threads += workers;
    most_threads = std::max<int>(most_threads, ThreadsWith(0));
    MutexLock lock(&mutex_);
    free_workers_.resize(workers);
    std::iota(free_workers_.rbegin(), free_workers_.rend(), 0);
  }

  ~Impl() {
    Cancel();
    used_threads -= workers_;
  }

  int workers() const { return workers_; }

  void Submit(Item item) {
    MutexLock lock(&mutex_);
    queue_.push_back(std::move(item));
    if (visits_ == workers_) return;  // a visiting thread will reach it
    ++visits_;
    {
      PoolsToVisit& pools = ThePoolsToVisit();
      MutexLock pools_lock(&pools.mutex);
      pools.queue.push_back(this);
    }
    arena_.enqueue([] { NextPoolToVisit()->Work(); });
  }

  void Cancel() {
    std::deque<Item> dropped;
    {
      MutexLock lock(&mutex_);
      dropped.swap(queue_);
    }
    dropped.clear();  // destructors of what items own may lock or wait
    WaitUntilIdle();
  }

  // A thread leaves only when the queue is empty, so "no visits" means "nothing queued or running".
  void WaitUntilIdle() {
    MutexLock lock(&mutex_);
    while (visits_ > 0) idle_.Wait(&mutex_);
  }

 private:
  // A task of oneTBB is one visit of a thread to a queue. The task holds no pointer to its pool:
  // what oneTBB copies from thread to thread is handed over where race detectors see no order. A
  // task takes the next pool from this list instead, be it of its own arena or of another: each
  // pool gets as many visits as it asked for.
  struct PoolsToVisit {
    Mutex mutex;
    std::deque<Impl*> queue RT_GUARDED_BY(mutex);
  };
  static PoolsToVisit& ThePoolsToVisit() {
    static auto* const pools = new PoolsToVisit;  // never destroyed: threads may end after main()
    return *pools;
  }
  static Impl* NextPoolToVisit() {
    PoolsToVisit& pools = ThePoolsToVisit();
    MutexLock lock(&pools.mutex);
    Impl* const next = pools.queue.front();
    pools.queue.pop_front();
    return next;
  }

  // Runs items until the queue is empty.
  void Work() {
    SetUpThread();
    int worker = -1;
    while (true) {
      Item item;
      {
        MutexLock lock(&mutex_);
        if (worker < 0) {
          worker = free_workers_.back();
          free_workers_.pop_back();
        }
        if (queue_.empty()) {
          free_workers_.push_back(worker);
          if (--visits_ == 0) idle_.NotifyAll();
          return;
        }
        item = std::move(queue_.front());
        queue_.pop_front();
      }
      item(worker);
    }
  }

  const int workers_;
  tbb::task_arena arena_;
  Mutex mutex_;  // locked before that of PoolsToVisit
  ConditionVariable idle_;
  std::deque<Item> queue_ RT_GUARDED_BY(mutex_);
  int visits_ RT_GUARDED_BY(mutex_) = 0;  // under way or asked for: at most workers_
  std::vector<int> free_workers_ RT_GUARDED_BY(mutex_);
};

Status WorkerPool::CheckStart(int workers) {
  const int missing = ThreadsWith(workers) - most_threads;
  return missing > 0 ? CheckThreadsCanStart(missing, "reading images") : OkStatus();
}

WorkerPool::WorkerPool(int workers) {
  RT_CHECK(workers >= 1, "a worker pool needs a worker");
  LiftThreadLimitOnce();
  impl_ = std::make_unique<Impl>(workers);
}
WorkerPool::~WorkerPool() = default;
int WorkerPool::workers() const { return impl_->workers(); }
void WorkerPool::Submit(Item item) { impl_->Submit(std::move(item)); }
void WorkerPool::Cancel() { impl_->Cancel(); }
void WorkerPool::WaitUntilIdle() { impl_->WaitUntilIdle(); }

}  // namespace ringtail
