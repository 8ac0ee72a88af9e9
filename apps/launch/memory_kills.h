// A number that grows whenever the kernel kills a process for lack of memory, in our control groups
// or anywhere on the machine (one kill may count several times). If it grows while a rank dies of a
// SIGKILL that nobody sent, that was probably why.
// Thread-safety: a function without state. Errors: what cannot be read counts as none.
#ifndef RINGTAIL_APPS_LAUNCH_MEMORY_KILLS_H_
#define RINGTAIL_APPS_LAUNCH_MEMORY_KILLS_H_

#include <cstdint>
#include <string>

namespace ringtail {

// `root` stands before /proc and /sys; tests put a folder there.
int64_t CountMemoryKills(const std::string& root = "");

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_MEMORY_KILLS_H_
