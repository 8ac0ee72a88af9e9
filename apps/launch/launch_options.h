// What Supervisor is to launch, and the command line of ringtail_launch.
#ifndef RINGTAIL_APPS_LAUNCH_LAUNCH_OPTIONS_H_
#define RINGTAIL_APPS_LAUNCH_LAUNCH_OPTIONS_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/launch/host_slots.h"
#include "core/status.h"

namespace CLI {
class App;
}

namespace ringtail {

struct LaunchOptions {
  std::vector<HostSlots> hosts;  // in the order in which ranks fill them; without --hosts this host
  bool over_ssh = false;         // with --hosts or --hostfile
  std::vector<std::string> ssh;  // the command before the host's name
  int port = 0;                  // of rank 0; 0: a free one
  bool no_kill = false;          // a rank other than 0 that fails does not end the job
  double timeout_kill_s = 10;    // for the other ranks to end after one has failed
  bool bind = true;              // each rank to its part of the host's cores
  std::string output_dir;        // for a file per rank; empty: none
  std::vector<std::string> environment;      // added to the ranks' environment: NAME=value
  std::vector<std::string> program;          // and its arguments
  std::vector<std::string> own_words;        // of the launcher's command line, before "--"
  std::string own_name = "ringtail_launch";  // before the launcher's messages
  // Receives the lines of rank 0's standard output, which are then not printed.
  std::function<void(std::string_view line)> on_line_of_rank_0;

  int world() const;
};

// The end of a program that launches nothing: --help, --version, or a wrong command line.
struct CommandLineEnd {
  int exit_code = 0;
  std::string out, err;
};

struct CommandLine {
  std::optional<LaunchOptions> options;
  CommandLineEnd end;  // without options
};

CommandLine ParseCommandLine(int count, const char* const* arguments,
                             const std::vector<std::string>& environment);
// Calls `describe` with the parser of that command line, for its man page.
void DescribeLauncher(const std::function<void(const CLI::App&)>& describe);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_LAUNCH_OPTIONS_H_
