// ringtail_launch: starts the ranks of a job on this host or on several (apps/launch/).
#include <cstdio>
#include <string_view>

#include "apps/launch/agent.h"
#include "apps/launch/child_process.h"
#include "apps/launch/launch_options.h"
#include "apps/launch/run_rank.h"
#include "apps/launch/supervisor.h"

int main(int count, char** arguments) {
  const std::string_view verb = count > 1 ? arguments[1] : "";
  if (verb == "run-rank") return ringtail::RunRank(count - 2, arguments + 2);
  if (verb == "agent") return ringtail::RunAgent();
  ringtail::OpenStandardFiles();
  ringtail::CommandLine line =
      ringtail::ParseCommandLine(count, arguments, ringtail::OwnEnvironment());
  if (!line.options) {
    std::fputs(line.end.out.c_str(), stdout);
    std::fputs(line.end.err.c_str(), stderr);
    return line.end.exit_code;
  }
  return ringtail::Supervisor(*std::move(line.options)).Run();
}
