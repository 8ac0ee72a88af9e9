#include "data/worker_pool.h"

#include <sys/resource.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/machine/thread_budget.h"
#include "core/machine/thread_limit.h"
#include "core/mutex.h"

namespace ringtail {
namespace {

constexpr char kThreadName[] = "rt-loader";
// A step of nice is a factor of 1.25 of a core's time:
// 5 leaves a competing loader thread a quarter of it.
constexpr int kNice = 5;

// How many threads TBB may have in all. Left alone it stops at the number of cores, counting the
// caller. Lives as long as the process: of several limits TBB takes the lowest, so one per pool
// would bind the others.
constexpr int kMaxThreads = 256;
void LiftThreadLimitOnce() {
  static const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, kMaxThreads);
}

// Threads of all pools that there are, and the most that these have been: TBB keeps threads for the
// next pool.
std::atomic<int> used_threads = 0, most_threads = 0;

int ThreadsWith(int more) { return std::min(used_threads + more, kMaxThreads - 1); }

// Orders what was done before TBB was called before what its thread then does, and the other way
// round. TBB does so, too, but inside its library, where a race detector does not see it. Not a
// member: a member could not be reached without being ordered already.
std::atomic<uint64_t> handed_over = 0;

// Names each thread that joins the arena and lowers its priority (which only ever concerns TBB's
// threads: the arena has no place for others); calls `joined` there.
class ThreadSetter : public tbb::task_scheduler_observer {
 public:
  ThreadSetter(tbb::task_arena& arena, std::function<void()> joined)
      : tbb::task_scheduler_observer(arena), joined_(std::move(joined)) {
    handed_over.fetch_add(1, std::memory_order_release);
    observe(true);
  }
  ~ThreadSetter() override {
    observe(false);  // waits for calls that are under way
    (void)handed_over.load(std::memory_order_acquire);
  }

  void on_scheduler_entry(bool /*is_worker*/) override {
    (void)handed_over.load(std::memory_order_acquire);
    joined_();
    SetThreadName(kThreadName);
    UnbindThread();
    // Advice: a system that refuses it has its reasons, and everything works without.
    (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), main_nice_ + kNice);
    handed_over.fetch_add(1, std::memory_order_release);
  }

 private:
  const std::function<void()> joined_;
  // Of the process's first thread, so that a run started with `nice` keeps the distance.
  const int main_nice_ = getpriority(PRIO_PROCESS, static_cast<id_t>(getpid()));
};

}  // namespace

class WorkerPool::Impl {
 public:
  explicit Impl(int workers)
      : workers_(workers),
        arena_(workers, /*reserved_for_masters=*/0),
        setter_(arena_, [this] { of_this_thread = this; }) {
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
    if (visits_ == workers_) return;  // a worker that is running will come to it
    ++visits_;
    handed_over.fetch_add(1, std::memory_order_release);
    arena_.enqueue(Visit());
  }

  void Cancel() {
    std::deque<Item> dropped;
    {
      MutexLock lock(&mutex_);
      dropped.swap(queue_);
    }
    dropped.clear();  // what Items own may lock or wait in its destructor
    WaitUntilIdle();
  }

  void WaitUntilIdle() {
    MutexLock lock(&mutex_);
    WaitUntilNobodyVisits();
  }

 private:
  // A worker leaves only when the queue is empty, so "no visits" means "nothing queued or running".
  void WaitUntilNobodyVisits() RT_REQUIRES(mutex_) {
    while (visits_ > 0) idle_.Wait(&mutex_);
  }

  // What TBB is given: one visit of a thread to the queue of its pool. It holds nothing, because
  // what TBB copies is handed over where a race detector does not see it.
  struct Visit {
    void operator()() const {
      (void)handed_over.load(std::memory_order_acquire);
      of_this_thread->Work();
    }
  };

  // Until the queue is empty.
  void Work() {
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

  static inline thread_local Impl* of_this_thread = nullptr;  // in whose arena it is
  const int workers_;
  tbb::task_arena arena_;
  ThreadSetter setter_;
  Mutex mutex_;
  ConditionVariable idle_;
  std::deque<Item> queue_ RT_GUARDED_BY(mutex_);
  int visits_ RT_GUARDED_BY(mutex_) = 0;  // that were begun or are to begin: at most workers_
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
