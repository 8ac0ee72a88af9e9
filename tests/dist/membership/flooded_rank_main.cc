// A rank of a world that works for as long as strangers come:
//
//   dist_flooded_rank_main RANK WORLD_SIZE PORT
//
// Prints "listens at ADDRESS" once it has joined, and then does steps: some arithmetic, and a
// message from every rank to every other. When rank 0 gets SIGTERM all end, and each prints "step
// END LASTED" for each of its steps, in microseconds of the steady clock. Ends with 1 if the world
// breaks.
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "dist/membership/join.h"

namespace ringtail {
namespace {

constexpr size_t kMessageBytes = 256 << 10;
volatile sig_atomic_t g_stop = 0;

int64_t Microseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Some milliseconds.
float Compute() {
  float sum = 0;
  for (int i = 0; i < 1'000'000; ++i) sum += std::sqrt(static_cast<float>(i) + sum * 1e-9F);
  return sum;
}

Status Exchange(Transport* transport, uint64_t step, const std::vector<std::byte>& mine,
                std::vector<std::vector<std::byte>>* theirs) {
  CompletionQueue queue;
  const MessageLabel label{.tag = {.collective = step}};
  size_t operations = 0;
  for (int peer = 0; peer < transport->world_size(); ++peer) {
    if (peer == transport->rank()) continue;
    transport->Receive(peer, label, (*theirs)[peer], {.queue = &queue, .id = operations++});
    transport->Send(peer, label, mine, {.queue = &queue, .id = operations++});
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  for (size_t i = 0; i < operations; ++i) {
    Completion done;
    if (!queue.Next(&done, deadline)) return {StatusCode::kDeadlineExceeded, "a step of minutes"};
    RT_RETURN_IF_ERROR(done.status);
  }
  return {};
}

int Main(char** arguments) {
  JoinOptions options;
  options.identity = {.rank = std::atoi(arguments[1]),
                      .world_size = std::atoi(arguments[2]),
                      .master_address = "127.0.0.1",
                      .master_port = std::atoi(arguments[3]),
                      .source = "test"};
  options.token = "a token for this test alone";
  options.join_timeout = std::chrono::minutes(2);
  options.shared_memory = false;
  const StatusOr<JoinedWorld> world = JoinWorld(options);
  if (!world.ok()) return std::fprintf(stderr, "%s\n", world.status().message().c_str()), 1;
  std::printf("listens at %s\n", world->ranks[world->rank].address.c_str());
  std::fflush(stdout);

  std::vector<std::byte> mine(kMessageBytes);
  std::vector<std::vector<std::byte>> theirs(world->ranks.size(), mine);
  std::vector<std::pair<int64_t, int64_t>> steps;
  while (theirs[0][0] == std::byte{0}) {
    const int64_t start = Microseconds();
    if (Compute() < 0) return 1;  // so that it is not left out
    mine[0] = std::byte{g_stop != 0 && world->rank == 0};
    const Status status = Exchange(world->transport.get(), steps.size() + 1, mine, &theirs);
    if (!status.ok()) return std::fprintf(stderr, "%s\n", status.message().c_str()), 1;
    if (world->rank == 0) theirs[0][0] = mine[0];
    const int64_t end = Microseconds();
    steps.emplace_back(end, end - start);
  }
  for (const auto& [end, lasted] : steps) {
    std::printf("step %lld %lld\n", static_cast<long long>(end), static_cast<long long>(lasted));
  }
  return 0;
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) {
  signal(SIGTERM, [](int) { ringtail::g_stop = 1; });
  return count == 4 ? ringtail::Main(arguments) : 2;
}
