// Counts the processes that the kernel has killed for lack of memory, in our control groups and on
// the whole machine (one kill may count several times). If the count grows while a rank ends by a
// SIGKILL of unknown origin, lack of memory was the probable cause.
// Thread-safety: a function without state. Errors: a counter that cannot be read counts as 0.
#ifndef RINGTAIL_APPS_LAUNCH_AGENT_MEMORY_KILLS_H_
#define RINGTAIL_APPS_LAUNCH_AGENT_MEMORY_KILLS_H_

#include <cstdint>
#include <string>

namespace ringtail {

// `root` is prepended to /proc and /sys, for tests.
int64_t CountMemoryKills(const std::string& root = "");

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_AGENT_MEMORY_KILLS_H_
