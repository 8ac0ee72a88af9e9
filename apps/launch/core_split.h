// The cores of this host, dealt out to the ranks on it, so that no two compute teams fight for one.
//
//   8 cores, 3 ranks:   0 1 2 | 3 4 5 | 6 7        neighbours stay together
//   2 cores, 5 ranks:   0 | 1 | 0 | 1 | 0          more ranks than cores: they share
//
// The threads of one physical core are neighbours here whatever their numbers are.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_LAUNCH_CORE_SPLIT_H_
#define RINGTAIL_APPS_LAUNCH_CORE_SPLIT_H_

#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

// The cores that this process may run on, by package and physical core; empty if Linux does not say.
// `root` stands before /sys; tests put a folder there.
std::vector<int> AllowedCores();
void SortByPhysicalCore(std::vector<int>* cores, const std::string& root = "");

std::vector<std::vector<int>> SplitCoreList(const std::vector<int>& cores, int ranks);

// Compute threads for each of `ranks` ranks on `usable` cores (core/machine/thread_budget.h), at least 1.
int ThreadsPerRank(int usable, int ranks);

std::string FormatNumbers(std::vector<int> numbers);  // "0-3,8"
StatusOr<std::vector<int>> ParseNumbers(const std::string& text);

Status BindTo(const std::vector<int>& cores);  // the calling thread, and what it will exec

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_CORE_SPLIT_H_
