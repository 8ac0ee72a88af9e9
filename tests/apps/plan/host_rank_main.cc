// dogs_vs_cats, of which every rank is on a host of its own; only its verb train:
//
//   ringtail_launch -n 2 -- apps_host_rank_main train --data DIR --output RUN
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "apps/dogs_vs_cats/command.h"
#include "apps/exit_code.h"
#include "dist/membership/identity/host_identity.h"

namespace ringtail {
namespace {

int Main(int count, char** arguments) {
  const char* const rank = std::getenv("RANK");
  SetHostKeyForTest(std::string("host of rank ") + (rank == nullptr ? "0" : rank));
  CLI::App app;
  Command chosen;
  AddTrainCommand(&app, &chosen);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  const StatusOr<int> exit_code = chosen();
  if (exit_code.ok()) return *exit_code;
  std::fprintf(stderr, "%s\n", exit_code.status().message().c_str());
  return ExitCodeOf(exit_code.status());
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) { return ringtail::Main(count, arguments); }
