#include "dist/gradients/communication_thread.h"

#include <utility>

#include "core/machine/thread_budget.h"
#include "core/stopwatch.h"

namespace ringtail {

CommunicationThread::CommunicationThread(Communicator* communicator)
    : communicator_(communicator), thread_([this] { Run(); }) {}

CommunicationThread::~CommunicationThread() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

int64_t CommunicationThread::Submit(Job job) {
  MutexLock lock(&mutex_);
  ++submitted_;
  if (!status_.ok()) return submitted_;
  jobs_.push_back(std::move(job));
  changed_.NotifyAll();
  return submitted_;
}

Status CommunicationThread::WaitFor(int64_t job) {
  const Stopwatch stopwatch;
  MutexLock lock(&mutex_);
  while (status_.ok() && done_ < job) changed_.Wait(&mutex_);
  times_.exposed_seconds += stopwatch.Seconds();
  return status_;
}

Status CommunicationThread::Wait() {
  int64_t last = 0;
  {
    MutexLock lock(&mutex_);
    last = submitted_;
  }
  return WaitFor(last);
}

bool CommunicationThread::idle() {
  MutexLock lock(&mutex_);
  return jobs_.empty();
}

ExchangeTimes CommunicationThread::TakeTimes() {
  MutexLock lock(&mutex_);
  return std::exchange(times_, {});
}

void CommunicationThread::Run() {
  SetThreadName("rt-comm");
  UnbindThread();  // runs beside the compute threads, not on the core of one
  while (true) {
    Job job;
    {
      MutexLock lock(&mutex_);
      while (jobs_.empty() && !ending_) changed_.Wait(&mutex_);
      if (ending_) return;
      job = jobs_.front();
    }
    const Stopwatch stopwatch;
    const Status status = job(communicator_);
    MutexLock lock(&mutex_);
    times_.busy_seconds += stopwatch.Seconds();
    jobs_.pop_front();
    ++done_;
    if (!status.ok()) {
      status_ = status;
      jobs_.clear();
    }
    changed_.NotifyAll();
  }
}

}  // namespace ringtail
