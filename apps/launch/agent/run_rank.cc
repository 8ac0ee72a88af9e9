#include "apps/launch/agent/run_rank.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "apps/launch/agent/core_split.h"
#include "apps/launch/number_list.h"

namespace ringtail {
namespace {

constexpr int kCannotRun = 126, kNotFound = 127;  // the exit codes of shells

// Named after the program, because others than ringtail_launch start ranks, too.
int Complain(const std::string& message, int exit_code) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  return exit_code;
}

}  // namespace

std::vector<std::string> RunRankCommand(const std::string& launcher, pid_t agent,
                                        const std::vector<int>& cores,
                                        const std::vector<std::string>& program) {
  std::vector<std::string> command = {launcher, "run-rank", fmt::format("{}", agent),
                                      cores.empty() ? "-" : FormatNumbers(cores)};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

int RunRank(int count, char** arguments) {
  constexpr int kProgram = 2;
  if (count <= kProgram)
    return Complain("run-rank is for agents, which start ranks by it", kCannotRun);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
    return Complain("cannot tie this rank to its agent", kCannotRun);
  }
  // The kernel sends no signal for an agent that ended before the call above.
  if (getppid() != std::atoi(arguments[0])) return Complain("the agent has ended", kCannotRun);
  if (std::strcmp(arguments[1], "-") != 0) {
    const auto cores = ParseNumbers(arguments[1]);
    const Status bound = cores.ok() ? BindTo(*cores) : cores.status();
    // The administrator may have removed cores since; the rank runs without binding, but slower.
    if (!bound.ok()) Complain(bound.message(), 0);
  }
  execvp(arguments[kProgram], arguments + kProgram);
  const int error = errno;
  return Complain(fmt::format("cannot start '{}': {}", arguments[kProgram], std::strerror(error)),
                  error == ENOENT ? kNotFound : kCannotRun);
}

}  // namespace ringtail
