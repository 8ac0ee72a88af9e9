#include "apps/launch/launch_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>
#include <sstream>
#include <utility>

#include "apps/exit_code.h"
#include "apps/help/wrapped_help.h"
#include "apps/number_flags.h"
#include "apps/version.h"
#include "core/storage/file.h"
#include "dist/membership/identity/rank_environment.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxHostfileBytes = 1 << 20;
constexpr double kMaxTimeoutS = 24 * 3600;

constexpr char kAbout[] =
    "Starts the ranks of a job, watches over them, and names the one that failed first.";
constexpr char kFooter[] = R"(
Each rank gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
RINGTAIL_TOKEN (a secret of this job) and, unless it is set, OMP_NUM_THREADS. Its input is empty; each
line of its output is printed behind its rank.

SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU go to all ranks; a second SIGINT, SIGTERM or
SIGHUP, more than a second after the first, kills them.
The exit code is that of the first rank that failed by itself (128 + signal if it was killed); with
--no-kill it is 0 if rank 0 ended with 0.

Examples
  ringtail_launch -n 4 -- ringtail train --data images --output runs/four
  ringtail_launch --hosts node1:2,node2:2 -- ringtail train --insecure ...)";

struct Flags {
  int ranks = 0;
  std::string hosts, hostfile;
  std::string ssh = "ssh -o BatchMode=yes -o ServerAliveInterval=10";
  bool no_bind = false;
  std::vector<std::string> env;
};

void AddFlags(CLI::App* app, Flags* flags, LaunchOptions* options) {
  app->add_option("-n", flags->ranks,
                  "Ranks; required without hosts (default with hosts: one per slot)")
      ->check(CLI::Range(1, kMaxWorldSize));
  auto* hosts =
      app->add_option("--hosts", flags->hosts, "Hosts and their slots: a:2,b:2, n[1-4]:2");
  app->add_option("--hostfile", flags->hostfile, "The same as a file, one per line: a slots=2")
      ->type_name("FILE")
      ->excludes(hosts);
  app->add_option("--port", options->port, "Port of rank 0 (default: a free one)")
      ->check(CLI::Range(1, 65535));
  app->add_option("--timeout-kill", options->timeout_kill_s,
                  "Seconds that ranks get to end when one has failed, before SIGTERM, and again "
                  "before SIGKILL")
      ->check(NumberIn(CLI::Range(0.0, kMaxTimeoutS)))
      ->capture_default_str();
  app->add_flag(
      "--no-kill", options->no_kill,
      "Ranks that fail, but for rank 0, do not end the others: for training that outlives "
      "them (dist.asynchronous)");
  app->add_flag("--no-bind", flags->no_bind, "Do not bind each rank to its share of the cores");
  app->add_option("--output-dir", options->output_dir,
                  "Also write the output of rank N to rank-N.txt in this folder")
      ->type_name("DIR");
  app->add_option(
         "--env", flags->env,
         "NAME or NAME=VALUE for ranks on other hosts (RINGTAIL_* and OMP_* are always sent)")
      ->allow_extra_args(false);
  app->add_option("--ssh", flags->ssh, "How to reach a host")->capture_default_str();
}

class UsageWithProgram : public WrappedHelp {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = WrappedHelp::make_usage(app, std::move(name));
    while (usage.ends_with('\n')) usage.pop_back();
    return usage + " -- PROGRAM ARGUMENTS...\n";
  }
};

StatusOr<std::vector<HostSlots>> ReadHosts(const Flags& flags) {
  if (!flags.hosts.empty()) return ParseHosts(flags.hosts);
  RT_ASSIGN_OR_RETURN(const std::string text, ReadFileText(flags.hostfile, kMaxHostfileBytes));
  return ParseHostfile(flags.hostfile, text);
}

// The value of "NAME" in `environment` as "NAME=value"; "NAME=value" unchanged.
StatusOr<std::string> Variable(const std::string& asked,
                               const std::vector<std::string>& environment) {
  if (asked.find('=') != std::string::npos && asked.front() != '=') return asked;
  const auto found =
      std::find_if(environment.begin(), environment.end(),
                   [&](const std::string& variable) { return variable.starts_with(asked + "="); });
  if (found != environment.end()) return *found;
  return InvalidArgument(fmt::format("--env {}: no such variable", asked));
}

// Variables of --env are also added to the environment of ranks on this host.
Status FillEnvironment(const Flags& flags, const std::vector<std::string>& environment,
                       LaunchOptions* options) {
  for (const std::string& variable : environment) {
    if (variable.starts_with("RINGTAIL_") || variable.starts_with("OMP_")) {
      options->environment.push_back(variable);
    }
  }
  for (const std::string& asked : flags.env) {
    RT_ASSIGN_OR_RETURN(const std::string variable, Variable(asked, environment));
    options->environment.push_back(variable);
  }
  return OkStatus();
}

Status Complete(const Flags& flags, const std::vector<std::string>& environment,
                LaunchOptions* options) {
  if (options->program.empty()) return InvalidArgument("no program: write it after --");
  options->over_ssh = !flags.hosts.empty() || !flags.hostfile.empty();
  if (options->over_ssh) {
    RT_ASSIGN_OR_RETURN(std::vector<HostSlots> hosts, ReadHosts(flags));
    RT_ASSIGN_OR_RETURN(options->hosts, PlaceRanks(std::move(hosts), flags.ranks));
  } else if (flags.ranks == 0) {
    return InvalidArgument("how many ranks? Give -n, --hosts or --hostfile");
  } else {
    options->hosts = {{"localhost", flags.ranks}};
  }
  std::istringstream words(flags.ssh);
  for (std::string word; words >> word;) options->ssh.push_back(word);
  if (options->ssh.empty()) return InvalidArgument("--ssh is empty");
  options->bind = !flags.no_bind;
  return FillEnvironment(flags, environment, options);
}

void DescribeTo(CLI::App* app, Flags* flags, LaunchOptions* options) {
  app->formatter(std::make_shared<UsageWithProgram>());
  app->set_version_flag("--version", fmt::format("ringtail {}", kRingtailVersion));
  app->footer(kFooter);
  AddFlags(app, flags, options);
}

CommandLine Refuse(const std::string& message) {
  return {std::nullopt,
          {kExitUsage, "", fmt::format("ringtail_launch: {}; see --help\n", message)}};
}

}  // namespace

int LaunchOptions::world() const {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const HostSlots& one) { return sum + one.slots; });
}

CommandLine ParseCommandLine(int count, const char* const* arguments,
                             const std::vector<std::string>& environment) {
  // The program and its arguments begin after the first "--" and are not parsed here.
  const char* const* end = arguments + count;
  const char* const* dashes = std::find(arguments, end, std::string_view("--"));
  Flags flags;
  LaunchOptions options;
  if (dashes != end) options.program.assign(dashes + 1, end);
  options.own_words.assign(arguments, dashes);
  CLI::App app(kAbout, "ringtail_launch");
  DescribeTo(&app, &flags, &options);
  try {
    app.parse(static_cast<int>(dashes - arguments), arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return Refuse(error.what());
    std::ostringstream out, err;
    app.exit(error, out, err);  // --help, --version
    return {std::nullopt, {kExitSuccess, out.str(), err.str()}};
  }
  const Status complete = Complete(flags, environment, &options);
  if (!complete.ok()) return Refuse(complete.message());
  return {std::move(options), {}};
}

void DescribeLauncher(const std::function<void(const CLI::App&)>& describe) {
  Flags flags;
  LaunchOptions options;
  CLI::App app(kAbout, "ringtail_launch");
  DescribeTo(&app, &flags, &options);
  describe(app);
}

}  // namespace ringtail
