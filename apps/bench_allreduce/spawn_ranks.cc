#include "apps/bench_allreduce/spawn_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "apps/exit_code.h"
#include "core/check.h"

namespace ringtail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{5};
constexpr int kRankEndedWithParent = 1;

std::vector<char*> NullTerminated(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings->size() + 1);
  for (std::string& string : *strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Not by glibc's wrapper, whose header lacks extern "C" in glibc 2.36.
int OpenProcessHandle(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

struct RankProcess {
  pid_t pid = -1;
  int handle = -1;      // readable when it has ended; -1 once we have seen that
  int wait_status = 0;  // of waitpid
};

class RankProcesses {
 public:
  ~RankProcesses();

  Status Start(const SpawnOptions& options);
  Status Watch(const std::function<Status(const std::string&)>& on_line);

 private:
  Status StartOne(int rank, const SpawnOptions& options, int output);
  bool Running() const;
  void WaitForEvents();
  void ReadOutput();
  void ReapEnded();
  void KillAll();
  Status Verdict() const;

  std::vector<RankProcess> ranks_;
  int pipe_ = -1;  // rank 0's output; -1 at its end
  std::string output_;
  std::vector<int> failed_;  // ranks, in the order in which we saw it
  std::optional<Clock::time_point> kill_at_;
};

RankProcesses::~RankProcesses() {
  KillAll();
  while (Running()) {
    WaitForEvents();
    ReapEnded();
  }
  if (pipe_ >= 0) close(pipe_);
}

Status RankProcesses::Start(const SpawnOptions& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "making a pipe for rank 0");
  pipe_ = ends[0];
  Status status;
  for (int rank = 0; rank < options.world && status.ok(); ++rank) {
    status = StartOne(rank, options, rank == 0 ? ends[1] : STDOUT_FILENO);
  }
  close(ends[1]);
  return status;
}

Status RankProcesses::StartOne(int rank, const SpawnOptions& options, int output) {
  std::vector<std::string> arguments = options.arguments;
  arguments.insert(arguments.begin(), "bench_allreduce");
  std::vector<std::string> environment = options.environment(rank);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  RankProcess process;
  const int error =
      posix_spawn(&process.pid, "/proc/self/exe", &actions, nullptr,
                  NullTerminated(&arguments).data(), NullTerminated(&environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus(error, fmt::format("starting rank {}", rank));
  process.handle = OpenProcessHandle(process.pid);
  RT_CHECK(process.handle >= 0, "a child process can be watched");
  ranks_.push_back(process);
  return OkStatus();
}

bool RankProcesses::Running() const {
  return std::ranges::any_of(ranks_, [](const RankProcess& rank) { return rank.handle >= 0; });
}

// Until rank 0 has said something, a rank has ended, or it is time to kill.
void RankProcesses::WaitForEvents() {
  std::vector<pollfd> events = {{pipe_, POLLIN, 0}};  // poll skips -1
  for (const RankProcess& rank : ranks_) events.push_back({rank.handle, POLLIN, 0});
  int timeout_ms = -1;
  if (kill_at_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - Clock::now());
    timeout_ms = static_cast<int>(std::max<int64_t>(left.count(), 0));
  }
  const int ready = poll(events.data(), events.size(), timeout_ms);
  RT_CHECK(ready >= 0 || errno == EINTR, "processes can be waited for");
}

void RankProcesses::ReadOutput() {
  pollfd event = {pipe_, POLLIN, 0};
  if (pipe_ < 0 || poll(&event, 1, 0) <= 0) return;
  char buffer[1 << 12];
  const ssize_t got = read(pipe_, buffer, sizeof(buffer));
  if (got > 0) {
    output_.append(buffer, static_cast<size_t>(got));
  } else if (got == 0 || errno != EINTR) {
    close(std::exchange(pipe_, -1));
  }
}

void RankProcesses::ReapEnded() {
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    RankProcess& process = ranks_[rank];
    if (process.handle < 0 || waitpid(process.pid, &process.wait_status, WNOHANG) == 0) continue;
    close(std::exchange(process.handle, -1));
    const bool done = WIFEXITED(process.wait_status) && WEXITSTATUS(process.wait_status) == 0;
    if (done) continue;
    failed_.push_back(static_cast<int>(rank));
    if (!kill_at_) kill_at_ = Clock::now() + kGrace;
  }
}

void RankProcesses::KillAll() {
  for (const RankProcess& rank : ranks_) {
    if (rank.handle >= 0) kill(rank.pid, SIGKILL);
  }
  kill_at_.reset();
}

Status RankProcesses::Watch(const std::function<Status(const std::string&)>& on_line) {
  while (Running() || pipe_ >= 0) {
    WaitForEvents();
    ReadOutput();
    ReapEnded();
    for (size_t end = output_.find('\n'); end != std::string::npos; end = output_.find('\n')) {
      RT_RETURN_IF_ERROR(on_line(output_.substr(0, end)));
      output_.erase(0, end + 1);
    }
    if (kill_at_ && Clock::now() >= *kill_at_) KillAll();
  }
  return Verdict();
}

Status RankProcesses::Verdict() const {
  if (failed_.empty()) return OkStatus();
  const auto own_reason = [this](int rank) {
    const int status = ranks_[rank].wait_status;
    return !WIFEXITED(status) || WEXITSTATUS(status) != kExitLostPeer;
  };
  const auto first = std::ranges::find_if(failed_, own_reason);
  const int rank = first == failed_.end() ? failed_.front() : *first;
  const int status = ranks_[rank].wait_status;
  return Internal(WIFSIGNALED(status)
                      ? fmt::format("rank {} was ended by signal {} ({})", rank, WTERMSIG(status),
                                    sigdescr_np(WTERMSIG(status)))
                      : fmt::format("rank {} failed with exit status {}; what it said is above",
                                    rank, WEXITSTATUS(status)));
}

}  // namespace

Status RunRanks(const SpawnOptions& options,
                const std::function<Status(const std::string&)>& on_line) {
  RankProcesses ranks;
  RT_RETURN_IF_ERROR(ranks.Start(options));
  return ranks.Watch(on_line);
}

void EndWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) std::_Exit(kRankEndedWithParent);
}

}  // namespace ringtail
