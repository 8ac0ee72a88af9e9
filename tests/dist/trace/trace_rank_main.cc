// One rank of a world that records a timeline:
//
//   dist_trace_rank_main RANK WORLD FOLDER
//
// A word goes from rank 0 to rank 1, and so on to the last; each rank works before and after it, in
// spans "before" and "after". Rank 0 writes FOLDER/trace.json. Sockets are in FOLDER, too.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/machine/thread_budget.h"
#include "dist/trace/world_trace.h"
#include "dist/transport/grpc/grpc_listener.h"

namespace ringtail {
namespace {

constexpr MessageLabel kLabel{.tag = {.collective = 1}};

Status PassOn(Transport* transport) {
  CompletionQueue queue;
  std::vector<std::byte> memory(8);
  const auto wait = [&queue] {
    Completion completion;
    const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    return queue.Next(&completion, deadline) ? completion.status : Internal("nothing came");
  };
  if (transport->rank() > 0) {
    transport->Receive(transport->rank() - 1, kLabel, memory, {.queue = &queue});
    RT_RETURN_IF_ERROR(wait());
  }
  { const ScopedSpan span("after", "test"); }
  if (transport->rank() + 1 < transport->world_size()) {
    transport->Send(transport->rank() + 1, kLabel, memory, {.queue = &queue});
    RT_RETURN_IF_ERROR(wait());
  }
  return {};
}

Status Run(int rank, int world_size, const std::string& folder) {
  SetThreadName("rt-trainer");
  std::vector<std::string> addresses;
  for (int i = 0; i < world_size; ++i) addresses.push_back(fmt::format("unix:{}/{}", folder, i));
  RT_ASSIGN_OR_RETURN(auto listener, ListenGrpc(addresses[rank], {}));
  RT_ASSIGN_OR_RETURN(const auto transport,
                      listener->Connect({.rank = rank, .addresses = addresses}));
  RT_ASSIGN_OR_RETURN(WorldTrace trace, WorldTrace::Start(transport.get()));
  { const ScopedSpan span("before", "test"); }
  RT_RETURN_IF_ERROR(PassOn(transport.get()));
  return trace.Finish(folder + "/trace.json", fmt::format("rank {} (node{})", rank, rank));
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const ringtail::Status status =
      ringtail::Run(std::atoi(arguments[1]), std::atoi(arguments[2]), arguments[3]);
  if (!status.ok()) std::fputs((status.ToString() + "\n").c_str(), stderr);
  return status.ok() ? 0 : 1;
}
