// How many cores this process may really use, and who gets them.
//
// Not hardware_concurrency: in a container, under a batch scheduler or behind `taskset` that counts
// cores which are not ours, and an OpenMP team with more threads than cores spends its time waiting
// for itself. What counts is the smaller of the affinity mask and the CPU quota of the process's
// control group (v1 or v2) and of all groups above it. A quota is rounded up: with 1.5 cores, a team
// of two that sleeps while it waits (core/short_spin.h) makes 1.5 times as much as one thread, though
// the kernel stops both for a quarter of each period.
//
// Compute threads are OpenMP's (core/parallel_for.h). They are bound to cores by OMP_PROC_BIND and
// OMP_PLACES, which OpenMP reads before main(): set them in the environment. Left alone, the kernel
// places the threads.
// Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_MACHINE_THREAD_BUDGET_H_
#define RINGTAIL_CORE_MACHINE_THREAD_BUDGET_H_

#include <string>
#include <string_view>

namespace ringtail {

// The cores of the affinity mask that the process began with, at least 1.
int AffinityCores();

// The CPU quota in cores (2.5), or infinity if there is none or it cannot be read. `root` stands
// before /proc/self/cgroup and /sys/fs/cgroup; tests put a folder there.
double CgroupQuotaCores(const std::string& root = "");

// min(AffinityCores, quota rounded up), at least 1.
int UsableCores(const std::string& root = "");

// The cores of one of several processes that share a machine of `online` cores: all that it may use,
// if somebody has given it its own already (a launcher, a container), else its share of them.
int CoresOfProcess(int usable, int online, int processes);
int OnlineCores();

// Lets the calling thread run on all cores of OpenMP's places: a thread made by one that OpenMP has
// bound inherits its one place. Does nothing where OpenMP binds no threads.
void UnbindThread();

struct ThreadBudget {
  int cores = 1;          // that the process may use
  int compute = 1;        // OpenMP team of the trainer thread: layers, optimizer
  int input = 1;          // loader workers: read, decode, augment
  int communication = 0;  // threads that reduce gradients; 0 on one machine

  // "2 cores: 2 compute, 2 input (shared)"; shared: together they are more than the cores. That is
  // right for compute and input: what one leaves idle the other uses.
  std::string Describe() const;
};

// `compute` and `input` as asked for;
// 0: as many as there are cores left after communication (at least 1).
ThreadBudget SplitCores(int cores, int compute, int input, int communication = 0);

// Names the calling thread for debuggers, `top -H` and traces.
// Cut after 15 bytes, all that Linux keeps.
void SetThreadName(std::string_view name);
std::string ThreadName();  // of the calling thread

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_THREAD_BUDGET_H_
