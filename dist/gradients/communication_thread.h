// CommunicationThread: runs collectives one after another while the trainer thread computes.
//
//   trainer thread   backward of layer 5 | 4      | 3      | 2      | 1   | Wait  | optimizer
//   rt-comm                     Submit ->[ bucket 0 ][ bucket 1 ][ bucket 2 ]^
//                                         hidden behind backward      exposed
//
// A thread that has something to do with the first results waits for these alone (WaitFor).
// Jobs run in the order in which they were submitted, which must be the same on every rank. After
// the first error no further job starts, and every Wait returns that error.
// Between Wait and the next Submit the thread is idle, and the trainer thread may use the
// communicator itself.
// Thread-safety: one thread submits and waits. Threads: one, named "rt-comm".
#ifndef RINGTAIL_DIST_GRADIENTS_COMMUNICATION_THREAD_H_
#define RINGTAIL_DIST_GRADIENTS_COMMUNICATION_THREAD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/communicator.h"

namespace ringtail {

struct ExchangeTimes {
  double busy_seconds = 0;     // in jobs
  double exposed_seconds = 0;  // in Wait and WaitFor: not hidden by computation
  double hidden_seconds() const { return busy_seconds - exposed_seconds; }
};

class CommunicationThread {
 public:
  using Job = std::function<Status(Communicator*)>;

  explicit CommunicationThread(Communicator* communicator);  // which must outlive it
  ~CommunicationThread();                                    // waits for the running job
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  // The number of the job, for WaitFor.
  int64_t Submit(Job job) RT_EXCLUDES(mutex_);
  // Returns when this job and those before it are done, or one has failed.
  Status WaitFor(int64_t job) RT_EXCLUDES(mutex_);
  // The same for all jobs.
  Status Wait() RT_EXCLUDES(mutex_);
  // Whether no job is left.
  bool idle() RT_EXCLUDES(mutex_);
  // Times since the last call. Call it after Wait.
  ExchangeTimes TakeTimes() RT_EXCLUDES(mutex_);

  Communicator* communicator() const { return communicator_; }

 private:
  void Run() RT_EXCLUDES(mutex_);  // body of thread_

  Communicator* const communicator_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Job> jobs_ RT_GUARDED_BY(mutex_);  // the first is running, unless the thread is idle
  int64_t submitted_ RT_GUARDED_BY(mutex_) = 0, done_ RT_GUARDED_BY(mutex_) = 0;  // numbers of jobs
  Status status_ RT_GUARDED_BY(mutex_);
  ExchangeTimes times_ RT_GUARDED_BY(mutex_);
  bool ending_ RT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_GRADIENTS_COMMUNICATION_THREAD_H_
