// Mutex, MutexLock and ConditionVariable: the standard library's, with annotations that let clang
// prove at compile time (-Wthread-safety) that guarded data is only touched while its mutex is
// held.
//
//   Mutex mutex_;
//   std::deque<Batch> full_ RT_GUARDED_BY(mutex_);
//   ConditionVariable not_empty_;
//
//   MutexLock lock(&mutex_);
//   while (full_.empty()) not_empty_.Wait(&mutex_);
//
// Wait takes no predicate, because clang cannot see that the lock is held inside a lambda; inside a
// loop it can. Thread-safety: any thread. Cost: as std::mutex and std::condition_variable.
#ifndef RINGTAIL_CORE_MUTEX_H_
#define RINGTAIL_CORE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define RT_THREAD_ANNOTATION_(x) __attribute__((x))
#else
#define RT_THREAD_ANNOTATION_(x)
#endif

#define RT_GUARDED_BY(mutex) RT_THREAD_ANNOTATION_(guarded_by(mutex))             // a member
#define RT_REQUIRES(...) RT_THREAD_ANNOTATION_(requires_capability(__VA_ARGS__))  // a function
#define RT_EXCLUDES(...) RT_THREAD_ANNOTATION_(locks_excluded(__VA_ARGS__))       // a function

namespace ringtail {

class RT_THREAD_ANNOTATION_(capability("mutex")) Mutex {
 public:
  void Lock() RT_THREAD_ANNOTATION_(acquire_capability()) { mutex_.lock(); }
  void Unlock() RT_THREAD_ANNOTATION_(release_capability()) { mutex_.unlock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

// Holds the mutex during its lifetime.
class RT_THREAD_ANNOTATION_(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) RT_THREAD_ANNOTATION_(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() RT_THREAD_ANNOTATION_(release_capability()) { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Waiting releases the mutex and acquires it again before returning. Wake-ups may be spurious: wait
// in a loop that checks the condition.
class ConditionVariable {
 public:
  void Wait(Mutex* mutex) RT_REQUIRES(mutex) {
    std::unique_lock lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False once `deadline` has passed.
  bool WaitUntil(Mutex* mutex, std::chrono::steady_clock::time_point deadline) RT_REQUIRES(mutex) {
    std::unique_lock lock(mutex->mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_until(lock, deadline);
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MUTEX_H_
