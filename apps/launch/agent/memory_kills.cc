#include "apps/launch/agent/memory_kills.h"

#include "core/machine/cgroup.h"

namespace ringtail {

int64_t CountMemoryKills(const std::string& root) {
  double kills = ReadCgroupField(root + "/proc/vmstat", "oom_kill").value_or(0);
  ForEachCgroup(root, "memory", [&](CgroupVersion version, const std::string& folder) {
    const char* file = version == CgroupVersion::kV2 ? "/memory.events" : "/memory.oom_control";
    kills += ReadCgroupField(folder + file, "oom_kill").value_or(0);
  });
  return static_cast<int64_t>(kills);
}

}  // namespace ringtail
