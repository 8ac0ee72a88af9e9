// The job of an agent (LaunchJob in launch.proto): its parts that are drawn at random or looked up,
// and the environment that each rank gets. Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_LAUNCH_JOB_H_
#define RINGTAIL_APPS_LAUNCH_JOB_H_

#include <string>
#include <vector>

#include "apps/launch/launch.pb.h"
#include "core/status.h"

namespace ringtail {

// DataLoss unless the job has a program and ranks that are part of its world.
Status CheckJob(const LaunchJob& job);

// 128 random bits as 32 hexadecimal digits: the secret by which the ranks of a job recognise each
// other.
StatusOr<std::string> NewToken();

// The environment of the rank `local_rank` of this host, made from `base`: RANK, WORLD_SIZE,
// LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and RINGTAIL_TOKEN, and OMP_NUM_THREADS if
// `base` has none. Variables of `base` that would tell
// dist/membership/identity/rank_environment.h otherwise are left out.
std::vector<std::string> EnvironmentOfRank(const LaunchJob& job, int local_rank, int threads,
                                           const std::vector<std::string>& base);

// `base`, in which the variables of `more` replace those of the same name.
std::vector<std::string> MergeEnvironments(const std::vector<std::string>& base,
                                           const std::vector<std::string>& more);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_JOB_H_
