// ComputeThread: a thread of its own for everything that computes with a network, in a program that
// has threads of its own, too.
//
// OpenMP keeps a team of threads for every thread that computes. If those of the program computed,
// each would get a team, and their number of threads, which belongs to the program, would change
// (core/parallel_for.h). So they hand their work to this thread and wait. Of all ComputeThreads of
// a process one works at a time: teams that work at the same time would take the cores from one
// another.
//
// fork(): the child has no such thread. It must neither use nor destroy one of its parent's (but
// may leave it alone), and may make its own.
//
// Thread-safety: Run may be called from any thread; those that wait come one after another.
#ifndef RINGTAIL_APPS_LIBRARY_COMPUTE_THREAD_H_
#define RINGTAIL_APPS_LIBRARY_COMPUTE_THREAD_H_

#include <exception>
#include <functional>
#include <memory>
#include <thread>

#include "core/mutex.h"
#include "core/status.h"

namespace ringtail {

class ComputeThread {
 public:
  // ResourceExhausted if the system does not allow one more thread.
  static StatusOr<std::unique_ptr<ComputeThread>> Start();
  ~ComputeThread();  // waits for the work that it has begun
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;

  // Calls `work` on this thread and returns when it is done. What it throws is thrown here.
  void Run(const std::function<void()>& work) RT_EXCLUDES(mutex_);

 private:
  ComputeThread() = default;
  void Serve() RT_EXCLUDES(mutex_);  // body of thread_

  Mutex mutex_;
  ConditionVariable changed_;
  const std::function<void()>* work_ RT_GUARDED_BY(mutex_) = nullptr;  // null once it is done
  std::exception_ptr thrown_ RT_GUARDED_BY(mutex_);
  bool ending_ RT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LIBRARY_COMPUTE_THREAD_H_
