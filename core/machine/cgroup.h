// The control groups of this process, where containers, batch schedulers and systemd set limits:
// version 2, version 1, or both at once.
// Thread-safety: functions without state. Errors: unreadable files count as missing.
#ifndef RINGTAIL_CORE_MACHINE_CGROUP_H_
#define RINGTAIL_CORE_MACHINE_CGROUP_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ringtail {

enum class CgroupVersion { kV1, kV2 };

// Calls visit(version, folder) for the folder of the process's group of `controller` ("cpu",
// "memory") and of all groups above it: a limit of any of them binds. In a container the path can
// be the host's, which is not visible: then the mount itself is the container's group. `root` is
// prepended to /proc/self/cgroup and /sys/fs/cgroup, for tests.
void ForEachCgroup(const std::string& root, const std::string& controller,
                   const std::function<void(CgroupVersion, const std::string&)>& visit);

// The numbers in a control file; empty if it is missing or says "max".
std::vector<double> ReadCgroupNumbers(const std::string& path);
// The number after `key` in a file of lines "key 123".
std::optional<double> ReadCgroupField(const std::string& path, const std::string& key);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_CGROUP_H_
