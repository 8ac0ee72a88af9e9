// Threads that decode: a TBB arena of `workers` threads named "rt-loader", fed from one queue.
//
// Items run in the order in which they were given. The queue is ours and not TBB's, for two
// reasons: what is queued can be dropped (Seek, shutdown), and every hand-over between threads goes
// through one mutex.
//
// The threads have a lower priority (nice +5) than those that compute: on a machine without cores
// to spare, a loader thread that takes a core for a time slice would hold up the whole OpenMP team
// at its next barrier. When compute waits for data, its cores are idle and the loader gets all of
// them.
//
// oneTBB cannot tell anybody that a thread could not be started, so ask CheckStart first.
// Thread-safety: any thread may call anything, except that the destructor is called once, last.
#ifndef RINGTAIL_DATA_WORKER_POOL_H_
#define RINGTAIL_DATA_WORKER_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "core/status.h"

namespace ringtail {

class WorkerPool {
 public:
  // Runs on one of the pool's threads; `worker` (0 .. workers - 1) is held by no other item
  // meanwhile, so that an item may use a buffer per worker.
  using Item = std::function<void(int worker)>;

  // ResourceExhausted, with the limit, if the system has no room for so many threads beside those of
  // the pools that there are. Not again for as many as there have been before.
  static Status CheckStart(int workers);

  explicit WorkerPool(int workers);  // >= 1
  ~WorkerPool();                     // drops what is queued and waits for what runs
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int workers() const;
  void Submit(Item item);
  // Drops what is queued (its Items are destroyed, never run) and waits for what runs.
  void Cancel();
  // Waits until nothing is queued or running.
  void WaitUntilIdle();

 private:
  class Impl;  // keeps TBB out of this header
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_WORKER_POOL_H_
