// The last step before the program of a rank starts, in the process that becomes it:
//
//   ringtail_launch run-rank AGENT_PID CORES|- PROGRAM ARGUMENTS...    (or bench_allreduce ...)
//
// posix_spawn can set neither affinity nor PR_SET_PDEATHSIG, so an agent starts itself again with
// this verb, which sets them and execs. Without binding of ranks, CORES are all cores of the host:
// OMP_PROC_BIND in the environment may have bound this process to one of them before main(). From
// then on the kernel kills the rank when its agent ends, for whatever reason. (PR_SET_PDEATHSIG
// does not extend to children of the program; the agent or the launcher kills those.)
#ifndef RINGTAIL_APPS_LAUNCH_AGENT_RUN_RANK_H_
#define RINGTAIL_APPS_LAUNCH_AGENT_RUN_RANK_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace ringtail {

std::vector<std::string> RunRankCommand(const std::string& launcher, pid_t agent,
                                        const std::vector<int>& cores,
                                        const std::vector<std::string>& program);

// `arguments` are those after "run-rank". Returns only if the program cannot be started: 127 if it
// does not exist, else 126, as shells do.
int RunRank(int count, char** arguments);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_AGENT_RUN_RANK_H_
