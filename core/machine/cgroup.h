// The control groups that this process runs in: where a container, a batch scheduler or systemd sets
// limits. Version 2, version 1, or both at once.
// Thread-safety: functions without state. Errors: what cannot be read is not there.
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
// be the host's, which we do not see: then the mount itself is the container's group. `root` stands
// before /proc/self/cgroup and /sys/fs/cgroup; tests put a folder there.
void ForEachCgroup(const std::string& root, const std::string& controller,
                   const std::function<void(CgroupVersion, const std::string&)>& visit);

// The numbers in a control file; empty if it is missing or says "max".
std::vector<double> ReadCgroupNumbers(const std::string& path);
// The number after `key` in a file of lines "key 123".
std::optional<double> ReadCgroupField(const std::string& path, const std::string& key);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_CGROUP_H_
