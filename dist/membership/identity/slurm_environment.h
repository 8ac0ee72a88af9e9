// What Slurm tells the tasks of a step (srun). Private to dist/membership/; see rank_environment.h.
// Thread-safety: functions without state. Source: srun(1), "OUTPUT ENVIRONMENT VARIABLES".
#ifndef RINGTAIL_DIST_MEMBERSHIP_IDENTITY_SLURM_ENVIRONMENT_H_
#define RINGTAIL_DIST_MEMBERSHIP_IDENTITY_SLURM_ENVIRONMENT_H_

#include <string_view>

#include "dist/membership/identity/environment_numbers.h"

namespace ringtail {

// Whether this process is a task of a step, not the batch script or a login shell in the job.
StatusOr<bool> IsSlurmTask(const Environment& environment);

// The first host of the step, and a port made of the numbers of job and step.
StatusOr<MasterAddress> SlurmMaster(const Environment& environment);

// The number of tasks on node `node` in "2(x3),1", Slurm's SLURM_STEP_TASKS_PER_NODE; 0: not known.
int TasksOnNode(std::string_view tasks_per_node, int64_t node);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_IDENTITY_SLURM_ENVIRONMENT_H_
