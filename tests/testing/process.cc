#include "tests/testing/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/check.h"

namespace ringtail {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> NullTerminated(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::pair<int, int> Pipe() {
  int ends[2];
  RT_CHECK(pipe2(ends, O_CLOEXEC) == 0, "cannot make a pipe");
  return {ends[0], ends[1]};
}

// Appends what is there; closes `pipe` and sets it to -1 at its end.
void Drain(int* pipe, std::string* to) {
  char buffer[1 << 16];
  const ssize_t got = read(*pipe, buffer, sizeof(buffer));
  if (got > 0) {
    to->append(buffer, static_cast<size_t>(got));
  } else if (got == 0 || errno != EINTR) {
    close(std::exchange(*pipe, -1));
  }
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> arguments,
                           std::vector<std::string> extra_environment,
                           std::chrono::seconds time_limit)
    : deadline_(Clock::now() + time_limit) {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    extra_environment.emplace_back(*variable);
  }
  const auto [out_read, out_write] = Pipe();
  const auto [err_read, err_write] = Pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out_write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err_write, STDERR_FILENO);
  std::vector<char*> argv = NullTerminated(arguments);
  std::vector<char*> environment = NullTerminated(extra_environment);
  const int error =
      posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(out_write);
  close(err_write);
  out_pipe_ = out_read;
  err_pipe_ = err_read;
  RT_CHECK(error == 0, "cannot start '" + arguments[0] + "': " + std::strerror(error));
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    Signal(SIGKILL);
    Wait();
  }
}

void ChildProcess::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

void ChildProcess::SignalTogether(const std::vector<int>& signals) const {
  Signal(SIGSTOP);
  siginfo_t stopped = {};
  RT_CHECK(waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED) == 0, "cannot stop a child");
  for (const int signal : signals) Signal(signal);
  Signal(SIGCONT);
}

bool ChildProcess::ReadSome() {
  if (out_pipe_ < 0 && err_pipe_ < 0) return false;
  pollfd pipes[] = {{out_pipe_, POLLIN, 0}, {err_pipe_, POLLIN, 0}};  // poll skips -1
  const int ready = poll(pipes, 2, MillisecondsLeft());
  if (ready == 0) {
    result_.timed_out = true;
    return false;
  }
  if (ready < 0) return errno == EINTR;
  if (pipes[0].revents != 0) Drain(&out_pipe_, &result_.out);
  if (pipes[1].revents != 0) Drain(&err_pipe_, &result_.err);
  return true;
}

std::optional<std::string> ChildProcess::ReadLine() {
  while (true) {
    const size_t end = result_.out.find('\n', next_line_);
    if (end != std::string::npos) {
      const size_t begin = std::exchange(next_line_, end + 1);
      return result_.out.substr(begin, end - begin);
    }
    if (!ReadSome()) return std::nullopt;
  }
}

bool ChildProcess::ReadUntilError(std::string_view text) {
  while (result_.err.find(text) == std::string::npos) {
    if (!ReadSome()) return false;
  }
  return true;
}

bool ChildProcess::WaitUntilItEnds() const {
  // Not by glibc's wrapper, whose header lacks extern "C" in glibc 2.36.
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  RT_CHECK(handle >= 0, "cannot watch a child process");
  pollfd end = {handle, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&end, 1, MillisecondsLeft());
  } while (ready < 0 && errno == EINTR);
  close(handle);
  return ready > 0;
}

int ChildProcess::MillisecondsLeft() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

ProcessResult ChildProcess::Wait() {
  if (pid_ < 0) return result_;
  while (ReadSome()) {
  }
  if (result_.timed_out || !WaitUntilItEnds()) {
    result_.timed_out = true;
    Signal(SIGKILL);
  }
  int state = 0;
  rusage usage = {};
  while (wait4(pid_, &state, 0, &usage) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (out_pipe_ >= 0) close(std::exchange(out_pipe_, -1));
  if (err_pipe_ >= 0) close(std::exchange(err_pipe_, -1));
  result_.max_rss_kib = usage.ru_maxrss;
  if (WIFEXITED(state)) result_.exit_code = WEXITSTATUS(state);
  if (WIFSIGNALED(state)) result_.signal = WTERMSIG(state);
  return result_;
}

ProcessResult RunProcess(std::vector<std::string> arguments,
                         std::vector<std::string> extra_environment,
                         std::chrono::seconds time_limit) {
  return ChildProcess(std::move(arguments), std::move(extra_environment), time_limit).Wait();
}

}  // namespace ringtail
