// The command line of ringtail_launch.
#ifndef RINGTAIL_APPS_LAUNCH_LAUNCH_OPTIONS_H_
#define RINGTAIL_APPS_LAUNCH_LAUNCH_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "apps/launch/host_slots.h"
#include "core/status.h"

namespace ringtail {

struct LaunchOptions {
  std::vector<HostSlots> hosts;  // where the ranks go, in order; one without --hosts: this one
  bool over_ssh = false;         // with --hosts or --hostfile
  std::vector<std::string> ssh;  // the command before the host's name
  int port = 0;                  // of rank 0; 0: a free one
  double timeout_kill_s = 10;
  bool bind = true;
  std::string output_dir;                // empty: none
  std::vector<std::string> environment;  // for remote ranks, NAME=value
  std::vector<std::string> program;      // and its arguments
  std::vector<std::string> own_words;    // of the command line, before "--"

  int world() const;
};

// What is wanted instead of a launch: --help, --version, or an error.
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

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_LAUNCH_OPTIONS_H_
