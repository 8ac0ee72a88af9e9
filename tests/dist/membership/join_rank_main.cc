// A rank in a process of its own, for tests that look at it from outside or kill it:
//
//   RINGTAIL_TOKEN=... dist_join_rank_main RANK WORLD_SIZE HOST:PORT
//
// Prints "joining", and "joined N ranks on H hosts" once it has; then waits to be killed.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "dist/membership/join.h"
#include "dist/membership/security/job_token.h"

namespace ringtail {
namespace {

std::optional<std::string> Environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

int Main(char** arguments) {
  const StatusOr<std::string> token = ReadJobToken(std::nullopt, Environment);
  if (!token.ok()) return 2;
  const std::string master = arguments[3];
  const size_t colon = master.rfind(':');
  JoinOptions options;
  options.identity = {.rank = std::atoi(arguments[1]),
                      .world_size = std::atoi(arguments[2]),
                      .master_address = master.substr(0, colon),
                      .master_port = std::atoi(master.c_str() + colon + 1),
                      .source = "test"};
  options.token = *token;
  options.join_timeout = std::chrono::minutes(2);
  std::puts("joining");
  std::fflush(stdout);
  const StatusOr<JoinedWorld> world = JoinWorld(options);
  if (!world.ok()) {
    std::fprintf(stderr, "%s\n", world.status().message().c_str());
    return 1;
  }
  std::printf("joined %d ranks on %d hosts\n", world->topology.world(), world->topology.hosts());
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) { return count == 4 ? ringtail::Main(arguments) : 2; }
