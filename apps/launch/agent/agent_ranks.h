// The ranks of one host: their processes, output pipes and exit status.
// Thread-safety: none.
#ifndef RINGTAIL_APPS_LAUNCH_AGENT_AGENT_RANKS_H_
#define RINGTAIL_APPS_LAUNCH_AGENT_AGENT_RANKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/launch/child_process.h"
#include "apps/launch/job.h"
#include "apps/launch/out_queue.h"
#include "apps/launch/poll_loop.h"

namespace ringtail {

class AgentRanks {
 public:
  // Reports starts, output and ends of the ranks to `launcher` as AgentMessages.
  AgentRanks(PollLoop* loop, OutQueue* launcher) : loop_(loop), launcher_(launcher) {}
  ~AgentRanks();
  AgentRanks(const AgentRanks&) = delete;
  AgentRanks& operator=(const AgentRanks&) = delete;

  Status Start(const LaunchJob& job);
  void Signal(int signal);        // to the process group of every rank that runs
  void CollectEnded();            // after a SIGCHLD
  void PauseReading(bool pause);  // while the launcher does not keep up with the output
  bool AllEnded() const { return running_ == 0; }

 private:
  struct Rank {
    int number = 0;
    ChildPipes process;
  };
  Status StartRank(const LaunchJob& job, int local_rank, const std::vector<int>& cores, int threads,
                   const std::vector<std::string>& base);
  void WatchPipes(Rank* rank);
  bool Forward(const Rank& rank, int* pipe, bool errors);
  void End(Rank* rank);

  PollLoop* const loop_;
  OutQueue* const launcher_;
  std::vector<Rank> ranks_;
  int running_ = 0;
  bool paused_ = false;
  int64_t memory_kills_ = 0;  // at the start of the ranks
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_AGENT_AGENT_RANKS_H_
