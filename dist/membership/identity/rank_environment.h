// Which rank is this? The same program runs alone, under our launcher and under every scheduler in
// use; this finds out from its flags and its environment which rank of which world it is.
//
// The first complete set wins:
//
//   source              rank                    world                   on this host
//   --rank ...          --rank                  --world                 --local-rank
//   RINGTAIL_*          RINGTAIL_RANK           RINGTAIL_WORLD_SIZE     RINGTAIL_LOCAL_RANK
//   torchrun style      RANK                    WORLD_SIZE              LOCAL_RANK
//   Slurm (srun)        SLURM_PROCID            SLURM_STEP_NUM_TASKS    SLURM_LOCALID
//   Open MPI            OMPI_COMM_WORLD_RANK    OMPI_COMM_WORLD_SIZE    OMPI_COMM_WORLD_LOCAL_RANK
//   MPICH, Hydra (PMI)  PMI_RANK                PMI_SIZE                MPI_LOCALRANKID
//   Kubeflow Trainer    PET_NODE_RANK           PET_NNODES              one rank per node
//   Kubernetes          JOB_COMPLETION_INDEX    --world, RINGTAIL_WORLD_SIZE or WORLD_SIZE
//   none of these: a world of 1
//
// ringtail_launch sets the torchrun style. A set that is there by half, a value that is no number,
// a rank outside of the world: InvalidArgument with the variable and its value, never a guess,
// because a rank that believes itself alone would train beside the others unnoticed.
//
// Where rank 0 is comes from --master HOST[:PORT], RINGTAIL_MASTER (the same), or MASTER_ADDR and
// MASTER_PORT, whatever the set. Otherwise Slurm's list of hosts begins with it, and Slurm's job
// number gives a port that all ranks know and two jobs seldom share. Open MPI and PMI do not say:
// if all ranks are on one host, that is it; else it must be given. A host without a port: 29500.
//
// Traps:
//   - A batch script outside srun has SLURM_NTASKS=4 and SLURM_PROCID=0 and is alone all the same:
//     only a step (SLURM_STEP_ID) has tasks, and the steps that hold scripts and shells have none.
//   - mpirun in a Slurm job starts its daemons by srun, and the ranks inherit the daemons' Slurm
//     variables: where mpirun's are there, Slurm's do not count.
//   - Kubernetes sets MASTER_PORT=tcp://10.0.0.1:80 if a service is called "master": not ours.
// Thread-safety: a function without state. Cost: microseconds.
#ifndef RINGTAIL_DIST_MEMBERSHIP_IDENTITY_RANK_ENVIRONMENT_H_
#define RINGTAIL_DIST_MEMBERSHIP_IDENTITY_RANK_ENVIRONMENT_H_

#include <functional>
#include <optional>
#include <string>

#include "core/status.h"
#include "dist/membership/identity/rank_identity.h"

namespace ringtail {

inline constexpr int kDefaultMasterPort = 29500;
// Slurm's ports: below those that Linux gives to outgoing connections (32768 and up).
inline constexpr int kSlurmFirstPort = 20000, kSlurmPorts = 10000;

struct RankFlags {  // what the command line says
  std::optional<int> rank, world_size, local_rank;
  std::optional<std::string> master;  // HOST[:PORT]; IPv6 with a port: [::1]:29500
};

// `environment` looks a variable up.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

StatusOr<RankIdentity> DetectRank(const RankFlags& flags, const Environment& environment);

std::optional<std::string> ProcessEnvironment(const std::string& name);  // getenv

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_IDENTITY_RANK_ENVIRONMENT_H_
