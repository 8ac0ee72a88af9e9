// One process of this program for each rank of a world on this machine, as bench_allreduce starts
// them when no launcher has.
//
//   this process ── posix_spawn ──> rank 0    its standard output is read line by line
//                └────────────────> rank 1    its standard output is ours, as all standard errors
//
// No orphans. A rank asks the kernel to be killed when this process ends, however that comes about
// (EndWithParent). If a rank fails, the others have five seconds to find out and to end, then they
// are killed. Signals from a terminal reach all of them without us.
//
// Why not ringtail_launch: it is for jobs (several hosts, cores, prefixed output); this is so that
// measuring takes one command.
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_SPAWN_RANKS_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_SPAWN_RANKS_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

struct SpawnOptions {
  int world = 1;
  std::vector<std::string> arguments;  // of each rank, without the program
  std::function<std::vector<std::string>(int rank)> environment;  // all of it, "NAME=value"
};

// Returns once all ranks have ended. `on_line` gets each line of rank 0's standard output without
// its newline; an error of it ends the ranks. If ranks fail, the status names the first that
// did so for a reason of its own (not because it had lost a peer).
Status RunRanks(const SpawnOptions& options,
                const std::function<Status(const std::string&)>& on_line);

// For a rank, before anything else: the kernel kills this process when `parent` ends. Ends it at
// once if that has already happened.
void EndWithParent(pid_t parent);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_SPAWN_RANKS_H_
