#include "apps/launch/agent_ranks.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/launch/core_split.h"
#include "apps/launch/frames.h"
#include "apps/launch/memory_kills.h"
#include "apps/launch/run_rank.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

constexpr size_t kReadBytes = 1 << 16;
// What a pipe can hold at most: a rank's last words end before that, whoever else goes on writing.
constexpr size_t kMaxPipeBytes = 1 << 20;

}  // namespace

AgentRanks::~AgentRanks() {
  for (Rank& rank : ranks_) {
    for (const int pipe : {rank.process.output, rank.process.errors}) {
      loop_->Unwatch(pipe);
      if (pipe >= 0) close(pipe);
    }
  }
}

Status AgentRanks::Start(const Job& job) {
  if (chdir(job.folder.c_str()) != 0) {
    return ErrnoStatus(errno, "cannot go to the folder '" + job.folder + "'");
  }
  memory_kills_ = CountMemoryKills();
  const std::vector<int> cores = AllowedCores();
  const auto parts = job.bind ? SplitCoreList(cores, job.local_world)
                              : std::vector<std::vector<int>>(job.local_world, cores);
  const int usable = std::min(UsableCores(), std::max<int>(1, static_cast<int>(cores.size())));
  const int threads = ThreadsPerRank(usable, job.local_world);
  const std::vector<std::string> base =
      job.remote ? MergeEnvironments(OwnEnvironment(), job.environment) : job.environment;
  ranks_.reserve(job.local_world);  // callbacks point to them
  for (int rank = 0; rank < job.local_world; ++rank) {
    RT_RETURN_IF_ERROR(StartRank(job, rank, parts[rank], threads, base));
  }
  return OkStatus();
}

Status AgentRanks::StartRank(const Job& job, int local_rank, const std::vector<int>& cores,
                             int threads, const std::vector<std::string>& base) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  RT_ASSIGN_OR_RETURN(const ChildPipes process,
                      StartChild(RunRankCommand(self, getpid(), cores, job.program),
                                 EnvironmentOfRank(job, local_rank, threads, base), false));
  ranks_.push_back({job.first_rank + local_rank, process});
  ++running_;
  launcher_->Append(
      EncodeFrame(AgentFrameKind::kStarted, ranks_.back().number, fmt::format("{}", process.pid)));
  WatchPipes(&ranks_.back());
  return OkStatus();
}

void AgentRanks::WatchPipes(Rank* rank) {
  for (const bool errors : {false, true}) {
    int* pipe = errors ? &rank->process.errors : &rank->process.output;
    if (*pipe < 0) continue;
    loop_->Watch(*pipe, POLLIN, [this, rank, pipe, errors] { PassOn(*rank, pipe, errors); });
  }
}

// Passes on what there is; false if that is nothing, or the end.
bool AgentRanks::PassOn(const Rank& rank, int* pipe, bool errors) {
  if (*pipe < 0) return false;
  bool ended = false;
  const std::string bytes = ReadAvailable(*pipe, kReadBytes, &ended);
  if (!bytes.empty()) {
    const AgentFrameKind kind = errors ? AgentFrameKind::kErrors : AgentFrameKind::kOutput;
    launcher_->Append(EncodeFrame(kind, rank.number, bytes));
  }
  if (ended) {
    loop_->Unwatch(*pipe);
    close(std::exchange(*pipe, -1));
  }
  return !bytes.empty();
}

void AgentRanks::Signal(int signal) {
  for (const Rank& rank : ranks_) {
    if (rank.process.pid > 0) kill(-rank.process.pid, signal);
  }
}

void AgentRanks::PauseReading(bool pause) {
  if (pause == std::exchange(paused_, pause)) return;
  for (Rank& rank : ranks_) {
    if (!pause) {
      WatchPipes(&rank);
    } else {
      loop_->Unwatch(rank.process.output);
      loop_->Unwatch(rank.process.errors);
    }
  }
}

void AgentRanks::CollectEnded() {
  while (true) {
    siginfo_t ended = {};
    // Looked at, but not reaped: while the leader's number is taken, so is its group's.
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
      return other.process.pid == ended.si_pid;
    });
    if (rank != ranks_.end()) {
      End(&*rank);
    } else {
      waitpid(ended.si_pid, nullptr, WNOHANG);  // an orphan that we have adopted
    }
  }
}

void AgentRanks::End(Rank* rank) {
  kill(-rank->process.pid, SIGKILL);  // what it has started and left behind
  int status = 0;
  rusage usage = {};
  while (wait4(rank->process.pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  rank->process.pid = -1;
  --running_;
  for (const bool errors : {false, true}) {
    int* pipe = errors ? &rank->process.errors : &rank->process.output;
    for (size_t reads = 0; reads < kMaxPipeBytes / kReadBytes; ++reads) {
      if (!PassOn(*rank, pipe, errors)) break;
    }
    if (*pipe < 0) continue;
    loop_->Unwatch(*pipe);
    close(std::exchange(*pipe, -1));
  }
  const int64_t memory_kills = CountMemoryKills() - memory_kills_;
  launcher_->Append(EncodeFrame(AgentFrameKind::kExited, rank->number,
                                fmt::format("{} {} {}", status, usage.ru_maxrss, memory_kills)));
}

}  // namespace ringtail
