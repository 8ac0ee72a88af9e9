#include "core/machine/thread_limit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <system_error>
#include <vector>

#include "core/machine/cgroup.h"
#include "core/mutex.h"

namespace ringtail {
namespace {

// oneTBB's stack size; other threads get the system's default, which may be smaller or larger.
constexpr size_t kSmallestStackBytes = size_t{4} << 20;
// For unchecked allocations of libraries on their threads: without it the program would crash
// later.
constexpr size_t kRoomBytes = size_t{16} << 20;

std::optional<int64_t> Limit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(limit.rlim_cur);
}

// Keeps threads alive until all of them have started.
class Gate {
 public:
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    opened_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(&mutex_);
    while (!open_) opened_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  ConditionVariable opened_;
  bool open_ RT_GUARDED_BY(mutex_) = false;
};

void* WaitAtGate(void* gate) {
  static_cast<Gate*>(gate)->Wait();
  return nullptr;
}

// Threads that wait at a gate, on stacks of our own: the C library caches the stacks that it
// allocates (40 MiB), which would be missing where the address space is limited.
class WaitingThreads {
 public:
  explicit WaitingThreads(Gate* gate) : gate_(gate) {
    pthread_attr_init(&attributes_);
    pthread_attr_getstacksize(&attributes_, &stack_bytes_);
    stack_bytes_ = std::max(stack_bytes_, kSmallestStackBytes);
    if (Limit(RLIMIT_AS)) stack_bytes_ += kRoomBytes;
  }
  ~WaitingThreads() {
    gate_->Open();
    for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
    for (void* const stack : stacks_) munmap(stack, stack_bytes_);
    pthread_attr_destroy(&attributes_);
  }
  WaitingThreads(const WaitingThreads&) = delete;
  WaitingThreads& operator=(const WaitingThreads&) = delete;

  int64_t count() const { return std::ssize(threads_); }

  // Returns 0 or an errno value.
  int Start() {
    void* const stack = mmap(nullptr, stack_bytes_, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return errno;
    stacks_.push_back(stack);
    pthread_attr_setstack(&attributes_, stack, stack_bytes_);
    pthread_t thread;
    const int error = pthread_create(&thread, &attributes_, WaitAtGate, gate_);
    if (error == 0) threads_.push_back(thread);
    return error;
  }

 private:
  Gate* const gate_;
  pthread_attr_t attributes_;
  size_t stack_bytes_ = 0;
  std::vector<void*> stacks_;
  std::vector<pthread_t> threads_;
};

// The lowest limit of the process's control group and those above it.
std::optional<int64_t> CgroupProcesses(const std::string& root) {
  std::optional<int64_t> lowest;
  ForEachCgroup(root, "pids", [&](CgroupVersion /*version*/, const std::string& folder) {
    const auto numbers = ReadCgroupNumbers(folder + "/pids.max");
    if (numbers.size() != 1) return;
    const auto limit = static_cast<int64_t>(numbers[0]);
    lowest = std::min(lowest.value_or(limit), limit);
  });
  return lowest;
}

}  // namespace

void SaveAddressSpace() {
  if (Limit(RLIMIT_AS)) (void)mallopt(M_ARENA_MAX, 1);
}

Status CheckThreadsCanStart(int count, std::string_view what_for) {
  int error = 0;
  int64_t started = 0;
  {
    Gate gate;
    WaitingThreads threads(&gate);
    while (threads.count() < count && error == 0) error = threads.Start();
    started = threads.count();
  }
  if (error == 0) return OkStatus();
  return ResourceExhausted(fmt::format("{}: {} of {} threads could be started ({}); {}", what_for,
                                       started, count, std::generic_category().message(error),
                                       DescribeThreadLimits()));
}

std::string DescribeThreadLimits(const std::string& root) {
  constexpr int64_t kBytesPerKib = 1024;
  std::vector<std::string> limits;
  if (const auto processes = CgroupProcesses(root)) {
    limits.push_back(
        fmt::format("{} processes and threads (pids.max of the control group)", *processes));
  }
  if (const auto processes = Limit(RLIMIT_NPROC)) {
    limits.push_back(fmt::format("{} processes and threads of the user (ulimit -u)", *processes));
  }
  if (const auto bytes = Limit(RLIMIT_AS)) {
    limits.push_back(fmt::format("{} KiB of address space (ulimit -v)", *bytes / kBytesPerKib));
  }
  if (limits.empty()) limits.emplace_back("those of the whole machine");
  return fmt::format(
      "limits: {}; raise them, or take fewer threads (--threads, --set data.workers=1)",
      fmt::join(limits, ", "));
}

}  // namespace ringtail
