#include "core/memory_limit.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace ringtail {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr double kGiB = 1 << 30;

// The number behind "key:" in a file of lines "key:   123 kB", in bytes.
std::optional<int64_t> ReadKibField(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  int64_t kib;
  while (file >> word) {
    if (word == key && file >> kib) return kib * 1024;
  }
  return std::nullopt;
}

std::optional<int64_t> ReadNumber(const char* path) {
  std::ifstream file(path);
  int64_t value;
  if (file >> value) return value;
  return std::nullopt;  // no such file, or "max"
}

int64_t CgroupLeft(const char* limit_path, const char* usage_path) {
  const auto limit = ReadNumber(limit_path), usage = ReadNumber(usage_path);
  if (!limit || !usage) return kNoLimit;
  return std::max<int64_t>(*limit - *usage, 0);
}

int64_t AddressSpaceLeft() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  const int64_t used = ReadKibField("/proc/self/status", "VmSize:").value_or(0);
  return std::max<int64_t>(static_cast<int64_t>(limit.rlim_cur) - used, 0);
}

}  // namespace

int64_t AvailableMemoryBytes() {
  return std::min({ReadKibField("/proc/meminfo", "MemAvailable:").value_or(kNoLimit),
                   CgroupLeft("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
                   CgroupLeft("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                              "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
                   AddressSpaceLeft()});
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
