// Rank 1 of a world of two, in a process of its own, for tests that kill or stop it:
//
//   dist_transport_rank_main ADDRESS_OF_RANK_0
//
// Prints its own address, and "connected" once it is; then waits for a message that never comes.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "dist/transport/grpc_transport.h"

namespace ringtail {
namespace {

int Main(const std::string& address_of_zero) {
  auto listener = GrpcListener::Listen("127.0.0.1:0", {});
  if (!listener.ok()) return 1;
  const std::vector<std::string> addresses{address_of_zero, (*listener)->address()};
  std::puts(addresses[1].c_str());
  std::fflush(stdout);
  const auto transport = ConnectGrpc(std::move(*listener), {.rank = 1, .addresses = addresses});
  if (!transport.ok()) return 1;
  std::puts("connected");
  std::fflush(stdout);
  CompletionQueue queue;
  std::vector<std::byte> memory(1);
  (*transport)->Receive(0, {.tag = {.collective = 1'000'000}}, memory, {.queue = &queue});
  Completion completion;
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  return queue.Next(&completion, deadline) && !completion.status.ok() ? 3 : 1;
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) { return count == 2 ? ringtail::Main(arguments[1]) : 2; }
