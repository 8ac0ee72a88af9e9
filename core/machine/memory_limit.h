// How much more memory this process may use.
// Thread-safety: functions without state. Cost: a few small files of /proc and /sys.
#ifndef RINGTAIL_CORE_MACHINE_MEMORY_LIMIT_H_
#define RINGTAIL_CORE_MACHINE_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace ringtail {

// The smallest of the kernel's MemAvailable and the rests of the control groups' limits and of
// RLIMIT_AS. A limit that cannot be read does not count.
int64_t AvailableMemoryBytes();

// The rest of the tightest limit of the process's control groups, the page cache counted as free;
// INT64_MAX if none is limited. `root` as in core/machine/cgroup.h.
int64_t CgroupMemoryLeft(const std::string& root = "");

// The peak resident size of this process (VmHWM).
int64_t PeakMemoryBytes();

// ResourceExhausted "<what> needs 12.3 GiB, but only 4.0 GiB of memory is available" if
// there is not enough.
Status CheckMemoryAvailable(int64_t bytes, const std::string& what);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_MEMORY_LIMIT_H_
