#include "core/machine/memory_limit.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "core/machine/cgroup.h"

namespace ringtail {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr double kGiB = 1 << 30;

// The number after "key:" in a file of lines "key:   123 kB", in bytes.
std::optional<int64_t> ReadKibField(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  int64_t kib;
  while (file >> word) {
    if (word == key && file >> kib) return kib * 1024;
  }
  return std::nullopt;
}

// The rest of one group's limit. The page cache counts as used there, but is given up to processes
// that need memory: it is counted as free here.
double CgroupLeft(CgroupVersion version, const std::string& folder) {
  const bool v2 = version == CgroupVersion::kV2;
  const auto limit = ReadCgroupNumbers(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto usage =
      ReadCgroupNumbers(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (limit.size() != 1 || usage.size() != 1) return std::numeric_limits<double>::infinity();
  const std::string statistics = folder + "/memory.stat", prefix = v2 ? "" : "total_";
  const double cache = ReadCgroupField(statistics, prefix + "inactive_file").value_or(0) +
                       ReadCgroupField(statistics, prefix + "active_file").value_or(0);
  return std::max(limit[0] - std::max(usage[0] - cache, 0.0), 0.0);
}

int64_t AddressSpaceLeft() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  const int64_t used = ReadKibField("/proc/self/status", "VmSize:").value_or(0);
  return std::max<int64_t>(static_cast<int64_t>(limit.rlim_cur) - used, 0);
}

}  // namespace

int64_t CgroupMemoryLeft(const std::string& root) {
  constexpr double kLargest = 1LL << 62;  // above it: no limit, which v1 writes as a number
  double left = kLargest;
  ForEachCgroup(root, "memory", [&](CgroupVersion version, const std::string& folder) {
    left = std::min(left, CgroupLeft(version, folder));
  });
  return left < kLargest ? static_cast<int64_t>(left) : kNoLimit;
}

int64_t AvailableMemoryBytes() {
  return std::min({ReadKibField("/proc/meminfo", "MemAvailable:").value_or(kNoLimit),
                   CgroupMemoryLeft(), AddressSpaceLeft()});
}

int64_t PeakMemoryBytes() { return ReadKibField("/proc/self/status", "VmHWM:").value_or(0); }

Status CheckMemoryAvailable(int64_t bytes, const std::string& what) {
  const int64_t available = AvailableMemoryBytes();
  if (bytes <= available) return OkStatus();
  return ResourceExhausted(
      fmt::format("{} needs {:.1f} GiB, but only {:.1f} GiB of memory is available", what,
                  bytes / kGiB, available / kGiB));
}

}  // namespace ringtail
