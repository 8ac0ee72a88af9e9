// What an agent is told: its ranks, the program, and all that the environment of a rank is made of.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_LAUNCH_JOB_H_
#define RINGTAIL_APPS_LAUNCH_JOB_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace ringtail {

struct Job {
  int first_rank = 0, local_world = 1, world = 1;
  std::string master_address;
  int master_port = 0;
  std::string token;   // secret
  std::string folder;  // working directory
  bool bind = true;    // each rank to its part of the host's cores
  // On a remote host, `environment` is added to what the login there gives; else it is all there is.
  bool remote = false;
  std::vector<std::string> environment;  // NAME=value
  std::vector<std::string> program;      // and its arguments
};

std::string EncodeJob(const Job& job);
StatusOr<Job> DecodeJob(std::string_view text);

// 128 random bits as 32 hexadecimal digits: the secret that ranks of one job know one another by.
StatusOr<std::string> NewToken();

// A port that nobody listened on a moment ago. Another program may take it before rank 0 does, who
// then says so and ends: choose one with --port where that happens.
StatusOr<int> FindFreePort();

// The environment of the rank `local_rank` of this host, from `base`: RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and RINGTAIL_TOKEN, without any variable that
// would say something else to dist/membership/identity/rank_environment.h, and with OMP_NUM_THREADS if
// nobody has set it.
std::vector<std::string> EnvironmentOfRank(const Job& job, int local_rank, int threads,
                                           const std::vector<std::string>& base);

// `base` with the variables of `more` in place of its own.
std::vector<std::string> MergeEnvironments(const std::vector<std::string>& base,
                                           const std::vector<std::string>& more);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_JOB_H_
