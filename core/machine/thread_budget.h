// How many cores this process may really use, and how they are divided.
//
// In a container, under a batch scheduler or behind `taskset`, hardware_concurrency counts cores
// that are not ours, and an OpenMP team with more threads than cores spends its time waiting for
// itself. The number of usable cores is the smaller of the affinity mask and the CPU quota of the
// process's control group (v1 or v2) and of all groups above it. A quota is rounded up: with 1.5
// cores, a team of two that sleeps while it waits (core/machine/short_spin.h) does 1.5 times the
// work of one thread, though the kernel stops both for a quarter of each period.
//
// Compute threads are OpenMP's (core/parallel_for.h). OMP_PROC_BIND and OMP_PLACES, which OpenMP
// reads from the environment before main(), bind them to cores; by default the kernel places them.
// Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_MACHINE_THREAD_BUDGET_H_
#define RINGTAIL_CORE_MACHINE_THREAD_BUDGET_H_

#include <string>
#include <string_view>

namespace ringtail {

// The number of cores in the affinity mask that the process started with, at least 1.
int AffinityCores();

// The tightest limit on the processor of the process's groups, in cores (2.5); infinity if there is
// none or it cannot be read. `root` is prepended to /proc/self/cgroup and /sys/fs/cgroup, for tests.
double CgroupQuota(const std::string& root = "");

// Seconds, summed over the cores, in which the quota has kept threads of the group from running
// since the group was made; of the group where that is longest. 0 without a quota.
double CgroupHeldSeconds(const std::string& root = "");

// min(AffinityCores, quota rounded up), at least 1.
int UsableCores(const std::string& root = "");

// The cores of one of several processes that share a machine of `online` cores: all that it may use
// if a launcher or container has already restricted it, else its share of them.
int CoresOfProcess(int usable, int online, int processes);
int OnlineCores();

// Lets the calling thread run on all cores of OpenMP's places: a thread started by a bound thread
// inherits its single place. No effect where OpenMP binds no threads.
void UnbindThread();

struct ThreadBudget {
  int cores = 1;          // that the process may use
  int compute = 1;        // OpenMP team of the trainer thread: layers, optimizer
  int input = 1;          // loader workers: read, decode, augment
  int communication = 0;  // threads that reduce gradients; 0 on one machine

  // "2 cores: 2 compute, 2 input (shared)"; shared: more threads than cores in total. For compute
  // and input that is intended: one uses the time that the other leaves idle.
  std::string Describe() const;
};

// `compute` and `input`: numbers of threads; 0: the cores left after communication (at least 1).
ThreadBudget SplitCores(int cores, int compute, int input, int communication = 0);

// Names the calling thread for debuggers, `top -H` and traces. Cut after 15 bytes, Linux's limit.
void SetThreadName(std::string_view name);
std::string ThreadName();  // of the calling thread

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_THREAD_BUDGET_H_
