// Divides the cores of this host among its ranks, so that compute teams do not compete for a core.
//
//   8 cores, 3 ranks:   0 1 2 | 3 4 5 | 6 7        neighbours stay together
//   2 cores, 5 ranks:   0 | 1 | 0 | 1 | 0          more ranks than cores: they share
//
// The hardware threads of one physical core count as neighbours, whatever their numbers.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_LAUNCH_AGENT_CORE_SPLIT_H_
#define RINGTAIL_APPS_LAUNCH_AGENT_CORE_SPLIT_H_

#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

// The cores that this process may run on, ordered by package and physical core; empty if they
// cannot be read. `root` is prepended to /sys, for tests.
std::vector<int> AllowedCores();
void SortByPhysicalCore(std::vector<int>* cores, const std::string& root = "");

std::vector<std::vector<int>> SplitCoreList(const std::vector<int>& cores, int ranks);

// Compute threads for each of `ranks` ranks on `usable` cores (core/machine/thread_budget.h), at
// least 1.
int ThreadsPerRank(int usable, int ranks);

Status BindTo(const std::vector<int>& cores);  // the calling thread and the program that it execs

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_AGENT_CORE_SPLIT_H_
