#include "dist/membership/identity/rank_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "dist/membership/identity/environment_numbers.h"
#include "dist/membership/identity/slurm_environment.h"

namespace ringtail {
namespace {

constexpr int kMaxRank = kMaxWorldSize - 1;

// The variables of one way to be started. A name may be empty: there is no such variable.
struct Style {
  const char* source;
  const char *rank, *world, *local_rank, *local_world;
};
constexpr Style kRingtail = {"RINGTAIL_RANK, RINGTAIL_WORLD_SIZE", "RINGTAIL_RANK",
                             "RINGTAIL_WORLD_SIZE", "RINGTAIL_LOCAL_RANK",
                             "RINGTAIL_LOCAL_WORLD_SIZE"};
constexpr Style kTorchrun = {"RANK, WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE"};
constexpr Style kSlurm = {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""};
constexpr Style kSlurmOld = {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""};
constexpr Style kOpenMpi = {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Style kPmi = {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Style kKubeflow = {"Kubeflow", "PET_NODE_RANK", "PET_NNODES", "", ""};

class Detector {
 public:
  Detector(const RankFlags& flags, const Environment& environment)
      : flags_(flags), environment_(environment) {}

  StatusOr<RankIdentity> Detect() {
    RT_ASSIGN_OR_RETURN(std::optional<RankIdentity> found, FirstCompleteSet());
    RankIdentity identity = found.value_or(RankIdentity{.source = "alone"});
    if (flags_.local_rank) identity.local_rank = *flags_.local_rank;
    RT_RETURN_IF_ERROR(CheckRanges(&identity));
    RT_RETURN_IF_ERROR(FindMaster(&identity));
    return identity;
  }

 private:
  bool Has(const char* name) const { return ReadText(environment_, name).has_value(); }
  StatusOr<std::optional<int64_t>> Number(const char* name, int64_t least, int64_t most) const {
    return ReadNumber(environment_, name, least, most);
  }

  StatusOr<std::optional<RankIdentity>> FirstCompleteSet() const {
    if (flags_.rank) return FromFlags();
    // Kubernetes does not say how many pods there are: there, and only there, a world comes alone.
    const bool world_may_be_alone = Has("JOB_COMPLETION_INDEX");
    if (flags_.world_size) {
      if (world_may_be_alone) return FromKubernetes(*flags_.world_size, "--world");
      return InvalidArgument(
          fmt::format("--world {} without --rank: give both or none", *flags_.world_size));
    }
    for (const Style& style : {kRingtail, kTorchrun}) {
      if (Has(style.world) && !Has(style.rank) && world_may_be_alone) {
        RT_ASSIGN_OR_RETURN(const auto world, Number(style.world, 1, kMaxWorldSize));
        return FromKubernetes(static_cast<int>(*world), style.world);
      }
      RT_ASSIGN_OR_RETURN(auto identity, FromVariables(style));
      if (identity) return identity;
    }
    return FromScheduler();
  }

  StatusOr<std::optional<RankIdentity>> FromScheduler() const {
    const bool under_mpirun = Has(kOpenMpi.rank) || Has(kPmi.local_rank);
    RT_ASSIGN_OR_RETURN(const bool slurm_task, IsSlurmTask(environment_));
    if (slurm_task && !under_mpirun) return FromSlurm();
    for (const Style& style : {kOpenMpi, kPmi}) {
      RT_ASSIGN_OR_RETURN(auto identity, FromVariables(style));
      if (identity) return identity;
    }
    if (Has(kKubeflow.rank)) return FromKubeflow();
    if (Has("JOB_COMPLETION_INDEX")) {
      return InvalidArgument(
          "JOB_COMPLETION_INDEX is set, but not how many pods there are: give --world, or set "
          "WORLD_SIZE to the job's `completions`");
    }
    return std::optional<RankIdentity>();
  }

  StatusOr<std::optional<RankIdentity>> FromFlags() const {
    if (!flags_.world_size) {
      return InvalidArgument(
          fmt::format("--rank {} without --world: give both or none", *flags_.rank));
    }
    return std::optional(RankIdentity{
        .rank = *flags_.rank, .world_size = *flags_.world_size, .source = "--rank, --world"});
  }

  // Nothing if neither rank nor world are there; an error if one of them is.
  StatusOr<std::optional<RankIdentity>> FromVariables(const Style& style) const {
    RT_ASSIGN_OR_RETURN(const auto rank, Number(style.rank, 0, kMaxRank));
    RT_ASSIGN_OR_RETURN(const auto world, Number(style.world, 1, kMaxWorldSize));
    if (!rank && !world) return std::optional<RankIdentity>();
    if (!rank || !world) {
      return InvalidArgument(fmt::format("{}={} is set, but {} is not: set both or none",
                                         rank ? style.rank : style.world, rank ? *rank : *world,
                                         rank ? style.world : style.rank));
    }
    if (*rank >= *world) {
      return InvalidArgument(
          fmt::format("{}={} is not below {}={}", style.rank, *rank, style.world, *world));
    }
    RT_ASSIGN_OR_RETURN(const auto local_rank, Number(style.local_rank, 0, kMaxRank));
    RT_ASSIGN_OR_RETURN(const auto local_world, Number(style.local_world, 1, kMaxWorldSize));
    return std::optional(RankIdentity{.rank = static_cast<int>(*rank),
                                      .world_size = static_cast<int>(*world),
                                      .local_rank = static_cast<int>(local_rank.value_or(0)),
                                      .local_world_size = static_cast<int>(local_world.value_or(0)),
                                      .source = style.source});
  }

  StatusOr<std::optional<RankIdentity>> FromSlurm() const {
    RT_ASSIGN_OR_RETURN(auto identity, FromVariables(Has(kSlurm.world) ? kSlurm : kSlurmOld));
    if (!identity) return InvalidArgument("SLURM_STEP_ID is set, but SLURM_PROCID is not");
    RT_ASSIGN_OR_RETURN(const auto node, Number("SLURM_NODEID", 0, kMaxRank));
    const auto tasks = ReadText(environment_, "SLURM_STEP_TASKS_PER_NODE");
    if (node && tasks) identity->local_world_size = TasksOnNode(*tasks, *node);
    return identity;
  }

  StatusOr<std::optional<RankIdentity>> FromKubeflow() const {
    RT_ASSIGN_OR_RETURN(const auto per_node, Number("PET_NPROC_PER_NODE", 1, kMaxWorldSize));
    if (per_node.value_or(1) != 1) {
      return InvalidArgument(fmt::format(
          "PET_NPROC_PER_NODE={}: Kubeflow starts one process per node; set it to 1", *per_node));
    }
    return FromVariables(kKubeflow);
  }

  StatusOr<std::optional<RankIdentity>> FromKubernetes(int world, const char* world_name) const {
    RT_ASSIGN_OR_RETURN(const auto rank, Number("JOB_COMPLETION_INDEX", 0, kMaxRank));
    if (*rank >= world) {
      return InvalidArgument(
          fmt::format("JOB_COMPLETION_INDEX={} is not below {}={}", *rank, world_name, world));
    }
    return std::optional(
        RankIdentity{.rank = static_cast<int>(*rank), .world_size = world, .source = "Kubernetes"});
  }

  // What flags say was not checked yet, and what is not known of this host follows from the rest.
  static Status CheckRanges(RankIdentity* identity) {
    if (identity->world_size < 1 || identity->world_size > kMaxWorldSize) {
      return InvalidArgument(fmt::format("--world {} is not a number from 1 to {}",
                                         identity->world_size, kMaxWorldSize));
    }
    if (identity->rank < 0 || identity->rank >= identity->world_size) {
      return InvalidArgument(fmt::format("--rank {} is not a number from 0 to {} (--world {})",
                                         identity->rank, identity->world_size - 1,
                                         identity->world_size));
    }
    if (identity->local_world_size < 1 || identity->source == "--rank, --world") {
      identity->local_world_size = identity->local_rank + 1;
    }
    if (identity->local_rank < 0 || identity->local_rank >= identity->local_world_size ||
        identity->local_world_size > identity->world_size) {
      return InvalidArgument(fmt::format("{}: rank {} of {} cannot be rank {} of {} on its host",
                                         identity->source, identity->rank, identity->world_size,
                                         identity->local_rank, identity->local_world_size));
    }
    return OkStatus();
  }

  Status FindMaster(RankIdentity* identity) const {
    RT_ASSIGN_OR_RETURN(MasterAddress master, ReadMaster(flags_, environment_));
    if (master.host.empty() && identity->world_size > 1) {
      RT_ASSIGN_OR_RETURN(const MasterAddress derived, DerivedMaster(*identity));
      master.host = derived.host;
      if (master.port == 0) master.port = derived.port;
      if (master.host.empty()) {
        return InvalidArgument(fmt::format(
            "rank {} of {} ({}) is not told where rank 0 is: give --master HOST:PORT, or set "
            "MASTER_ADDR and MASTER_PORT",
            identity->rank, identity->world_size, identity->source));
      }
    }
    identity->master_address = master.host;
    identity->master_port =
        master.port == 0 && !master.host.empty() ? kDefaultMasterPort : master.port;
    return OkStatus();
  }

  StatusOr<MasterAddress> DerivedMaster(const RankIdentity& identity) const {
    if (identity.source == kSlurm.source) return SlurmMaster(environment_);
    if (identity.source == kKubeflow.source) return KubeflowMaster();
    const bool mpi = identity.source == kOpenMpi.source || identity.source == kPmi.source;
    if (mpi && identity.local_world_size == identity.world_size) {
      return MasterAddress{"127.0.0.1", 0};
    }
    return MasterAddress{};
  }

  StatusOr<MasterAddress> KubeflowMaster() const {
    const auto host = ReadText(environment_, "PET_MASTER_ADDR");
    if (!host) return MasterAddress{};
    RT_ASSIGN_OR_RETURN(MasterAddress master, ParseMaster("PET_MASTER_ADDR", *host));
    RT_ASSIGN_OR_RETURN(const auto port, Number("PET_MASTER_PORT", 1, 65535));
    if (port) master.port = static_cast<int>(*port);
    return master;
  }

  const RankFlags& flags_;
  const Environment& environment_;
};

}  // namespace

StatusOr<RankIdentity> DetectRank(const RankFlags& flags, const Environment& environment) {
  return Detector(flags, environment).Detect();
}

std::optional<std::string> ProcessEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace ringtail
