#include "apps/launch/agent/agent_ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/launch/agent/core_split.h"
#include "apps/launch/agent/memory_kills.h"
#include "apps/launch/agent/run_rank.h"
#include "apps/launch/agent_messages.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

constexpr size_t kReadBytes = 1 << 16;
// The most that a pipe holds: the output of a rank that has ended is complete within it, even if
// other processes keep on writing.
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

Status AgentRanks::Start(const LaunchJob& job) {
  if (chdir(job.folder().c_str()) != 0) {
    return ErrnoStatus(errno, "cannot change to the folder '" + job.folder() + "'");
  }
  memory_kills_ = CountMemoryKills();
  const std::vector<int> cores = AllowedCores();
  const auto parts = job.bind() ? SplitCoreList(cores, job.local_world())
                                : std::vector<std::vector<int>>(job.local_world(), cores);
  const int usable = std::min(UsableCores(), std::max<int>(1, static_cast<int>(cores.size())));
  const int threads = ThreadsPerRank(usable, job.local_world());
  std::vector<std::string> base(job.environment().begin(), job.environment().end());
  if (job.remote()) base = MergeEnvironments(OwnEnvironment(), base);
  ranks_.reserve(job.local_world());  // callbacks point to its elements
  for (int rank = 0; rank < job.local_world(); ++rank) {
    RT_RETURN_IF_ERROR(StartRank(job, rank, parts[rank], threads, base));
  }
  return OkStatus();
}

Status AgentRanks::StartRank(const LaunchJob& job, int local_rank, const std::vector<int>& cores,
                             int threads, const std::vector<std::string>& base) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::vector<std::string> program(job.program().begin(), job.program().end());
  RT_ASSIGN_OR_RETURN(const ChildPipes process,
                      StartChild(RunRankCommand(self, getpid(), cores, program),
                                 EnvironmentOfRank(job, local_rank, threads, base), false));
  ranks_.push_back({job.first_rank() + local_rank, process});
  ++running_;
  AgentMessage message;
  message.mutable_started()->set_rank(ranks_.back().number);
  message.mutable_started()->set_pid(process.pid);
  launcher_->Append(EncodeAgentMessage(message));
  WatchPipes(&ranks_.back());
  return OkStatus();
}

void AgentRanks::WatchPipes(Rank* rank) {
  for (const bool errors : {false, true}) {
    int* pipe = errors ? &rank->process.errors : &rank->process.output;
    if (*pipe < 0) continue;
    loop_->Watch(*pipe, POLLIN, [this, rank, pipe, errors] { Forward(*rank, pipe, errors); });
  }
}

// Forwards the bytes that the pipe holds; false if there are none.
bool AgentRanks::Forward(const Rank& rank, int* pipe, bool errors) {
  if (*pipe < 0) return false;
  bool ended = false;
  const std::string bytes = ReadAvailable(*pipe, kReadBytes, &ended);
  if (!bytes.empty()) {
    AgentMessage message;
    message.mutable_printed()->set_rank(rank.number);
    message.mutable_printed()->set_on_standard_error(errors);
    message.mutable_printed()->set_bytes(bytes);
    launcher_->Append(EncodeAgentMessage(message));
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
    // WNOWAIT: until the leader is reaped, its number and that of its group are not reused.
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
      return other.process.pid == ended.si_pid;
    });
    if (rank != ranks_.end()) {
      End(&*rank);
    } else {
      waitpid(ended.si_pid, nullptr, WNOHANG);  // an adopted orphan
    }
  }
}

void AgentRanks::End(Rank* rank) {
  kill(-rank->process.pid, SIGKILL);  // processes that it has started and left behind
  int status = 0;
  rusage usage = {};
  while (wait4(rank->process.pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  rank->process.pid = -1;
  --running_;
  for (const bool errors : {false, true}) {
    int* pipe = errors ? &rank->process.errors : &rank->process.output;
    for (size_t reads = 0; reads < kMaxPipeBytes / kReadBytes; ++reads) {
      if (!Forward(*rank, pipe, errors)) break;
    }
    if (*pipe < 0) continue;
    loop_->Unwatch(*pipe);
    close(std::exchange(*pipe, -1));
  }
  AgentMessage message;
  RankExited* const exited = message.mutable_exited();
  exited->set_rank(rank->number);
  exited->set_wait_status(status);
  exited->set_peak_kib(usage.ru_maxrss);
  exited->set_memory_kills(CountMemoryKills() - memory_kills_);
  launcher_->Append(EncodeAgentMessage(message));
}

}  // namespace ringtail
