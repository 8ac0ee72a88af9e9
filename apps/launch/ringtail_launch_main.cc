// ringtail_launch: starts the ranks of a job on this host or on several (apps/launch/).
#include <cstdio>
#include <utility>

#include "apps/launch/child_process.h"
#include "apps/launch/launch_options.h"
#include "apps/launch/own_verbs.h"
#include "apps/launch/supervisor.h"

int main(int count, char** arguments) {
  if (const auto exit_code = ringtail::RunOwnVerb(count, arguments)) return *exit_code;
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
