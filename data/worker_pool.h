// Threads that decode: an oneTBB arena of `workers` threads named "rt-loader", fed from one queue.
//
// Items run in the order in which they were submitted. The queue is ours and not oneTBB's, for two
// reasons: queued items can be dropped (Seek, shutdown), and every hand-over between threads goes
// through a mutex of ours, which race detectors see.
//
// The threads have a lower priority (nice +5) than compute threads: on a machine without spare
// cores, a loader thread that takes a core for a time slice would hold up the whole OpenMP team at
// its next barrier. When compute waits for data, its cores are idle and the loader gets all of
// them.
//
// oneTBB cannot report that a thread could not be started, so call CheckStart first.
// Thread-safety: any thread may call anything, except that the destructor is called once, last.
#ifndef RINGTAIL_DATA_WORKER_POOL_H_
#define RINGTAIL_DATA_WORKER_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "core/status.h"

namespace ringtail {

inline constexpr const char* kLoaderThreads = "rt-loader";  // the name of each of them

class WorkerPool {
 public:
  // Runs on one of the pool's threads. No other running item has the same `worker`
  // (0 .. workers - 1), so that an item may use a buffer per worker.
  using Item = std::function<void(int worker)>;

  // ResourceExhausted, with the limit, if the system cannot run so many threads beside those of the
  // existing pools. Threads that earlier pools had are reused and not checked again.
  static Status CheckStart(int workers);

  explicit WorkerPool(int workers);  // >= 1
  ~WorkerPool();                     // drops queued items and waits for running ones
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int workers() const;
  void Submit(Item item);
  // Drops queued items (destroyed, never run) and waits for running ones.
  void Cancel();
  // Waits until nothing is queued or running.
  void WaitUntilIdle();

 private:
  class Impl;  // keeps oneTBB out of this header
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_WORKER_POOL_H_
