// WorkerCores: a worker's cores, which its steps share with its communication, in virtual time.
//
//   steps     |============ computing ============|
//   sending        |  |     |                        takes processor time, the wire hides the rest
//   coding               |~~~~~~~~~~~~|              one thread: both are slower while both run
//
// By how much slower both are is the planner's rule (dist/planner/core_share.h): on one core each has
// half of it, on eight cores coding has 8/9 of a core. What steps lack is summed up as `missing`, and
// makes the worker's next pass longer (EmulatedJob::BeginPass).
// Thread-safety: one thread.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_WORKER_CORES_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_WORKER_CORES_H_

#include <cstdint>
#include <vector>

#include "apps/emulator/clock/event_queue.h"
#include "dist/planner/core_share.h"

namespace ringtail {

class WorkerCores {
 public:
  // A worker has one core until set_cores. `queue` must outlive this.
  explicit WorkerCores(EventQueue* queue);
  // `cores` > 0, of each worker.
  void set_cores(double cores);

  // The worker computes until then.
  void Computes(int worker, int64_t until_ns);
  // Now, if it does not compute.
  int64_t ComputesUntil(int worker) const;

  // Takes `seconds` of all cores from what the worker computes now; nothing if it does not compute.
  void Take(int worker, double seconds);
  // The same of one thread, for so long.
  void TakeThread(int worker, double seconds) { Take(worker, seconds / cores_); }
  // Work of one thread, that takes `alone_ns` if the worker does not compute meanwhile, begins now; `done`
  // runs at its end. Computing that begins after a pause, in the middle of the work, does not slow it down.
  void WorkBeside(int worker, int64_t alone_ns, EventQueue::Action done);

  // What was missing since the last call, for all cores at once.
  int64_t TakeMissingNs(int worker);

 private:
  struct Use {
    int64_t until_ns = 0, missing_ns = 0;
  };
  Use* UseOf(int worker);

  EventQueue* const queue_;
  double cores_ = 1;
  CoreShare share_;        // while one thread works beside steps
  std::vector<Use> uses_;  // by worker; grows with the workers that join
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_WORKER_CORES_H_
