#include "dist/membership/identity/slurm_environment.h"

#include <algorithm>
#include <limits>

#include "dist/membership/identity/host_list.h"

namespace ringtail {
namespace {

// Slurm numbers the steps that hold a batch script, an interactive shell and the like downwards
// from the largest number of 32 bits.
constexpr int64_t kFirstSpecialStep = 0xfffffff0;
constexpr int64_t kMostStep = std::numeric_limits<uint32_t>::max();

// Steps of one job may run side by side, and so may jobs with near numbers: sixteen ports a job.
constexpr int kPortsPerJob = 16;

StatusOr<int> Port(const Environment& environment) {
  RT_ASSIGN_OR_RETURN(const auto job, ReadNumber(environment, "SLURM_JOB_ID", 0, kMostStep));
  RT_ASSIGN_OR_RETURN(const auto step, ReadNumber(environment, "SLURM_STEP_ID", 0, kMostStep));
  if (!job) return kDefaultMasterPort;
  const int64_t number = *job * kPortsPerJob + step.value_or(0) % kPortsPerJob;
  return static_cast<int>(kSlurmFirstPort + number % kSlurmPorts);
}

}  // namespace

StatusOr<bool> IsSlurmTask(const Environment& environment) {
  RT_ASSIGN_OR_RETURN(const auto step, ReadNumber(environment, "SLURM_STEP_ID", 0, kMostStep));
  return step && *step < kFirstSpecialStep;
}

StatusOr<MasterAddress> SlurmMaster(const Environment& environment) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    const auto list = ReadText(environment, name);
    if (!list) continue;
    const auto hosts = ExpandHostList(*list);
    if (!hosts.ok()) return hosts.status().Annotate(name);
    RT_ASSIGN_OR_RETURN(const int port, Port(environment));
    return MasterAddress{hosts->front(), port};
  }
  return MasterAddress{};
}

int TasksOnNode(std::string_view tasks_per_node, int64_t node) {
  while (!tasks_per_node.empty()) {  // one entry: "2" or "2(x3)"
    const size_t end = std::min(tasks_per_node.find(','), tasks_per_node.size());
    const std::string_view entry = tasks_per_node.substr(0, end);
    tasks_per_node.remove_prefix(std::min(end + 1, tasks_per_node.size()));
    const size_t bracket = std::min(entry.find("(x"), entry.size());
    int64_t nodes = 1;
    if (bracket < entry.size()) {
      if (entry.back() != ')') return 0;
      nodes = ParseDigits(entry.substr(bracket + 2, entry.size() - bracket - 3)).value_or(0);
    }
    const auto tasks = ParseDigits(entry.substr(0, bracket));
    if (!tasks || nodes == 0 || *tasks > kMaxWorldSize) return 0;
    if (node < nodes) return static_cast<int>(*tasks);
    node -= nodes;
  }
  return 0;
}

}  // namespace ringtail
