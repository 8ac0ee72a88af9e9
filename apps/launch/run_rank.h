// The last step before a rank's program begins, in the process that becomes it:
//
//   ringtail_launch run-rank AGENT_PID CORES|- PROGRAM ARGUMENTS...
//
// posix_spawn can set neither affinity nor PR_SET_PDEATHSIG, so an agent starts itself again with
// this verb, which sets them and execs. CORES are all that it may use if ranks are not bound: with
// OMP_PROC_BIND in the environment, this process has been bound to one of them before main(). From then on the kernel kills the rank when its agent ends,
// however that ends. (Not on the program's own children: those the agent or the launcher collects.)
#ifndef RINGTAIL_APPS_LAUNCH_RUN_RANK_H_
#define RINGTAIL_APPS_LAUNCH_RUN_RANK_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace ringtail {

std::vector<std::string> RunRankCommand(const std::string& launcher, pid_t agent,
                                        const std::vector<int>& cores,
                                        const std::vector<std::string>& program);

// What stands behind "run-rank". Returns only if the program cannot be started: 127 if it is not
// there, else 126, as shells do.
int RunRank(int count, char** arguments);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_RUN_RANK_H_
