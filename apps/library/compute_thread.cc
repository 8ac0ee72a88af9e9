#include "apps/library/compute_thread.h"

#include <pthread.h>

#include <atomic>
#include <string>
#include <system_error>
#include <utility>

#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

// Held by the caller whose work is computed. A thread of the parent may hold it at a fork(), and
// would never release it in the child, which therefore gets another.
std::atomic<Mutex*> turn = nullptr;

void NewTurn() { turn = new Mutex; }

Mutex* Turn() {
  static const bool made = [] {
    NewTurn();
    pthread_atfork(nullptr, nullptr, NewTurn);
    return true;
  }();
  (void)made;
  return turn;
}

}  // namespace

StatusOr<std::unique_ptr<ComputeThread>> ComputeThread::Start() {
  std::unique_ptr<ComputeThread> started(new ComputeThread);
  try {
    started->thread_ = std::thread([thread = started.get()] { thread->Serve(); });
  } catch (const std::system_error& error) {
    return ResourceExhausted(std::string("a thread cannot be started: ") + error.what());
  }
  return started;
}

ComputeThread::~ComputeThread() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void ComputeThread::Run(const std::function<void()>& work) {
  MutexLock in_turn(Turn());
  std::exception_ptr thrown;
  {
    MutexLock lock(&mutex_);
    work_ = &work;
    changed_.NotifyAll();
    while (work_ != nullptr) changed_.Wait(&mutex_);
    thrown = std::exchange(thrown_, nullptr);
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void ComputeThread::Serve() {
  SetThreadName("rt-compute");
  while (true) {
    const std::function<void()>* work = nullptr;
    {
      MutexLock lock(&mutex_);
      while (work_ == nullptr && !ending_) changed_.Wait(&mutex_);
      if (work_ == nullptr) return;
      work = work_;
    }
    std::exception_ptr thrown;
    try {
      (*work)();
    } catch (...) {
      thrown = std::current_exception();
    }
    MutexLock lock(&mutex_);
    thrown_ = thrown;
    work_ = nullptr;
    changed_.NotifyAll();
  }
}

}  // namespace ringtail
