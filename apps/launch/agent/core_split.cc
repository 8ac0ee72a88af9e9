#include "apps/launch/agent/core_split.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <tuple>

#include "apps/launch/number_list.h"
#include "core/machine/cgroup.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

constexpr int kMostCores = 1 << 16;

using CoreSet = std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)>;
CoreSet MakeCoreSet(int cores) {
  CoreSet set(CPU_ALLOC(cores), [](cpu_set_t* s) { CPU_FREE(s); });
  CPU_ZERO_S(CPU_ALLOC_SIZE(cores), set.get());
  return set;
}

int TopologyNumber(const std::string& root, int core, const char* name) {
  const auto numbers = ReadCgroupNumbers(  // reads any file of numbers
      fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/{}", root, core, name));
  return numbers.empty() ? 0 : static_cast<int>(numbers.front());
}

}  // namespace

std::vector<int> AllowedCores() {
  UnbindThread();  // OMP_PROC_BIND in our environment has bound us before main()
  std::vector<int> cores;
  const CoreSet set = MakeCoreSet(kMostCores);
  const size_t bytes = CPU_ALLOC_SIZE(kMostCores);
  if (sched_getaffinity(0, bytes, set.get()) != 0) return cores;
  for (int core = 0; core < kMostCores; ++core) {
    if (CPU_ISSET_S(core, bytes, set.get())) cores.push_back(core);
  }
  SortByPhysicalCore(&cores);
  return cores;
}

void SortByPhysicalCore(std::vector<int>* cores, const std::string& root) {
  std::vector<std::tuple<int, int, int>> places;
  for (const int core : *cores) {
    places.emplace_back(TopologyNumber(root, core, "physical_package_id"),
                        TopologyNumber(root, core, "core_id"), core);
  }
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < places.size(); ++i) (*cores)[i] = std::get<2>(places[i]);
}

std::vector<std::vector<int>> SplitCoreList(const std::vector<int>& cores, int ranks) {
  std::vector<std::vector<int>> parts(ranks);
  const int count = static_cast<int>(cores.size());
  if (count == 0) return parts;
  for (int rank = 0; rank < ranks; ++rank) {
    if (count < ranks) {
      parts[rank] = {cores[rank % count]};
    } else {  // the first count % ranks parts get one more
      const int each = count / ranks, more = count % ranks;
      const int begin = rank * each + std::min(rank, more);
      const int end = begin + each + (rank < more ? 1 : 0);
      parts[rank].assign(cores.begin() + begin, cores.begin() + end);
    }
  }
  return parts;
}

int ThreadsPerRank(int usable, int ranks) { return std::max(1, usable / ranks); }

Status BindTo(const std::vector<int>& cores) {
  const CoreSet set = MakeCoreSet(kMostCores);
  const size_t bytes = CPU_ALLOC_SIZE(kMostCores);
  for (const int core : cores) CPU_SET_S(core, bytes, set.get());
  if (sched_setaffinity(0, bytes, set.get()) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot bind to the cores " + FormatNumbers(cores));
}

}  // namespace ringtail
