#include "core/machine/thread_budget.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "core/machine/cgroup.h"
#include "core/text/counted.h"
#include "fmt/format.h"

namespace ringtail {
namespace {

constexpr size_t kThreadNameBytes = 16;  // including the final zero

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

double Quota(double quota_us, double period_us) {
  return quota_us <= 0 || period_us <= 0 ? kNoQuota : quota_us / period_us;  // v1 says -1 for none
}

double QuotaV2(const std::string& folder) {  // "200000 100000" or "max 100000"
  const auto numbers = ReadCgroupNumbers(folder + "/cpu.max");
  return numbers.size() == 2 ? Quota(numbers[0], numbers[1]) : kNoQuota;
}

double QuotaV1(const std::string& folder) {
  const auto quota = ReadCgroupNumbers(folder + "/cpu.cfs_quota_us");
  const auto period = ReadCgroupNumbers(folder + "/cpu.cfs_period_us");
  return quota.size() == 1 && period.size() == 1 ? Quota(quota[0], period[0]) : kNoQuota;
}

// With OMP_PROC_BIND or OMP_PLACES, OpenMP has bound this thread to one place before main() began.
bool OpenMpBindsThreads() { return omp_get_proc_bind() != omp_proc_bind_false; }

}  // namespace

int AffinityCores() {
  if (OpenMpBindsThreads()) return std::max(1, omp_get_num_procs());
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

double CgroupQuota(const std::string& root) {
  double tightest = kNoQuota;
  ForEachCgroup(root, "cpu", [&](CgroupVersion version, const std::string& folder) {
    tightest =
        std::min(tightest, version == CgroupVersion::kV2 ? QuotaV2(folder) : QuotaV1(folder));
  });
  return tightest;
}

double CgroupHeldSeconds(const std::string& root) {
  double longest = 0;
  ForEachCgroup(root, "cpu", [&](CgroupVersion version, const std::string& folder) {
    const bool v2 = version == CgroupVersion::kV2;
    const auto held =
        ReadCgroupField(folder + "/cpu.stat", v2 ? "throttled_usec" : "throttled_time");
    longest = std::max(longest, held.value_or(0) / (v2 ? 1e6 : 1e9));
  });
  return longest;
}

int UsableCores(const std::string& root) {
  const int affinity = AffinityCores();
  const double quota = CgroupQuota(root);
  return quota < affinity ? std::max(1, static_cast<int>(std::ceil(quota))) : affinity;
}

int CoresOfProcess(int usable, int online, int processes) {
  return usable < online ? usable : std::max(1, usable / std::max(1, processes));
}

int OnlineCores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

std::string ThreadBudget::Describe() const {
  std::string text =
      fmt::format("{}: {} compute, {} input", Counted(cores, "core"), compute, input);
  if (communication > 0) text += fmt::format(", {} communication", communication);
  if (compute + input + communication > cores) text += " (shared)";
  return text;
}

void UnbindThread() {
  if (!OpenMpBindsThreads()) return;
  std::vector<int> cores;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    const size_t known = cores.size();
    cores.resize(known + omp_get_place_num_procs(place));
    omp_get_place_proc_ids(place, cores.data() + known);
  }
  if (cores.empty()) return;
  const int cpus = *std::max_element(cores.begin(), cores.end()) + 1;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(cpus),
                                                             [](cpu_set_t* s) { CPU_FREE(s); });
  if (set == nullptr) return;
  const size_t bytes = CPU_ALLOC_SIZE(cpus);
  CPU_ZERO_S(bytes, set.get());
  for (const int core : cores) CPU_SET_S(core, bytes, set.get());
  (void)sched_setaffinity(0, bytes, set.get());  // if refused, the thread stays where it is, slower
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
