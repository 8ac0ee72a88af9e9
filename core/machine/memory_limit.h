// How much memory this process may still take.
#ifndef RINGTAIL_CORE_MACHINE_MEMORY_LIMIT_H_
#define RINGTAIL_CORE_MACHINE_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace ringtail {

// The smallest of: the kernel's MemAvailable, what the control groups have left, what RLIMIT_AS has
// left. A limit that cannot be read counts as none.
int64_t AvailableMemoryBytes();

// What the tightest of the process's control groups has left, the page cache counted as free; INT64_MAX
// if none is limited. `root` as in core/machine/cgroup.h.
int64_t CgroupMemoryLeft(const std::string& root = "");

// The largest resident size that this process has had (VmHWM).
int64_t PeakMemoryBytes();

// ResourceExhausted "<what> needs 12.3 GiB, but only 4.0 GiB of memory is available" if it does.
Status CheckMemoryAvailable(int64_t bytes, const std::string& what);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_MEMORY_LIMIT_H_
