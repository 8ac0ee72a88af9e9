#include "core/thread_budget.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include "core/file.h"
#include "fmt/format.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxControlFileBytes = 1 << 16;
constexpr size_t kThreadNameBytes = 16;  // with the closing zero
constexpr double kNoQuota = std::numeric_limits<double>::infinity();

// The numbers in a control file; empty if it is missing or says "max".
std::vector<double> ReadNumbers(const std::string& path) {
  std::vector<double> numbers;
  const StatusOr<std::string> text = ReadFileText(path, kMaxControlFileBytes);
  if (!text.ok()) return numbers;
  std::istringstream stream(*text);
  for (double number; stream >> number;) numbers.push_back(number);
  return numbers;
}

double Quota(double quota_us, double period_us) {
  return quota_us > 0 && period_us > 0 ? quota_us / period_us : kNoQuota;  // v1 says -1 for none
}

double QuotaV2(const std::string& folder) {  // "200000 100000" or "max 100000"
  const auto numbers = ReadNumbers(folder + "/cpu.max");
  return numbers.size() == 2 ? Quota(numbers[0], numbers[1]) : kNoQuota;
}

double QuotaV1(const std::string& folder) {
  const auto quota = ReadNumbers(folder + "/cpu.cfs_quota_us");
  const auto period = ReadNumbers(folder + "/cpu.cfs_period_us");
  return quota.size() == 1 && period.size() == 1 ? Quota(quota[0], period[0]) : kNoQuota;
}

// The tightest quota of `group` ("/a/b") and all groups above it. In a container the path can be
// the host's, which we do not see: then the mount itself is the container's group, and the walk
// ends there.
double TightestQuota(const std::string& mount, std::string group,
                     double (*quota)(const std::string&)) {
  if (group.find("..") != std::string::npos) group.clear();  // outside our namespace
  double tightest = quota(mount);
  while (group.size() > 1) {
    tightest = std::min(tightest, quota(mount + group));
    group.resize(group.rfind('/'));
  }
  return tightest;
}

// One line of /proc/self/cgroup, "number:controllers:/group"; v2's has no controllers.
struct CgroupLine {
  std::string controllers, group;
};

std::optional<CgroupLine> ParseCgroupLine(const std::string& line) {
  const size_t first = line.find(':');
  if (first == std::string::npos) return std::nullopt;
  const size_t second = line.find(':', first + 1);
  if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) return std::nullopt;
  return CgroupLine{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

bool HasCpuController(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

int AffinityCores() {
  constexpr int kFirstGuess = 1024, kMostCpus = 1 << 20;
  for (int cpus = kFirstGuess; cpus <= kMostCpus; cpus *= 2) {  // the kernel's mask may be larger
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(cpus),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (set != nullptr && sched_getaffinity(0, bytes, set.get()) == 0) {
      return std::max(1, CPU_COUNT_S(bytes, set.get()));
    }
    if (errno != EINVAL) break;
  }
  return 1;
}

double CgroupQuotaCores(const std::string& root) {
  const StatusOr<std::string> text = ReadFileText(root + "/proc/self/cgroup", kMaxControlFileBytes);
  if (!text.ok()) return kNoQuota;
  const std::string mount = root + "/sys/fs/cgroup";
  double tightest = kNoQuota;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto parsed = ParseCgroupLine(line);
    if (!parsed) continue;
    if (parsed->controllers.empty()) {
      tightest = std::min(tightest, TightestQuota(mount, parsed->group, QuotaV2));
    } else if (HasCpuController(parsed->controllers)) {
      for (const std::string& folder : {parsed->controllers, std::string("cpu")}) {
        const std::string controller_mount = fmt::format("{}/{}", mount, folder);
        tightest = std::min(tightest, TightestQuota(controller_mount, parsed->group, QuotaV1));
      }
    }
  }
  return tightest;
}

int UsableCores(const std::string& root) {
  const int affinity = AffinityCores();
  const double quota = CgroupQuotaCores(root);
  return quota < affinity ? std::max(1, static_cast<int>(quota)) : affinity;
}

std::string ThreadBudget::Describe() const {
  std::string text =
      fmt::format("{} core{}: {} compute, {} input", cores, cores == 1 ? "" : "s", compute, input);
  if (communication > 0) text += fmt::format(", {} communication", communication);
  if (compute + input + communication > cores) text += " (shared)";
  return text;
}

ThreadBudget SplitCores(int cores, int compute, int input, int communication) {
  const int rest = std::max(1, cores - communication);
  return {.cores = cores,
          .compute = compute > 0 ? compute : rest,
          .input = input > 0 ? input : rest,
          .communication = communication};
}

void SetThreadName(std::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, kThreadNameBytes - 1)).c_str());
}

std::string ThreadName() {
  std::array<char, kThreadNameBytes> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

}  // namespace ringtail
