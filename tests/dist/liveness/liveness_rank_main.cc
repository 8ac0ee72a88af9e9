// One rank of a world that trains nothing, for tests that stop it or let it hang:
//
//   dist_liveness_rank_main RANK WORLD FOLDER
//
// Every step it computes for a moment, and exchanges a word with every other rank. Sockets are in
// FOLDER, and so is what the test wants: if there is a file "hang.RANK", its training thread hangs
// in backward; if there is "finish", all ranks end with the same step. Prints "training" after its
// first step and "finished" at the end; errors go to stderr. Exit code 75 if the world broke.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "dist/liveness/progress_monitor.h"
#include "dist/transport/grpc/grpc_listener.h"

namespace ringtail {
namespace {

using namespace std::chrono_literals;

constexpr int kLostAPeer = 75;

bool Exists(const std::string& path) {
  struct stat unused {};
  return stat(path.c_str(), &unused) == 0;
}

void Say(const char* line) {
  std::puts(line);
  std::fflush(stdout);
}

void SayError(const char* what, const Status& status) {
  std::fputs(fmt::format("{}: {}\n", what, status.ToString()).c_str(), stderr);
}

// Sends `word` to every rank and receives theirs; returns that of rank 0.
StatusOr<uint64_t> Exchange(Transport* transport, uint64_t step, uint64_t word) {
  const MessageLabel label{.tag = {.collective = step}};
  const int world_size = transport->world_size();
  std::vector<uint64_t> words(world_size);
  words[transport->rank()] = word;
  CompletionQueue queue;
  for (int peer = 0; peer < world_size; ++peer) {
    if (peer == transport->rank()) continue;
    transport->Send(peer, label, std::as_bytes(std::span(&word, 1)), {.queue = &queue});
    transport->Receive(peer, label, std::as_writable_bytes(std::span(&words[peer], 1)),
                       {.queue = &queue});
  }
  Status first;
  for (int pending = 2 * (world_size - 1); pending > 0; --pending) {
    Completion completion;
    if (!queue.Next(&completion, std::chrono::steady_clock::now() + 5min)) std::abort();
    if (first.ok()) first = completion.status;
  }
  if (!first.ok()) return first;
  return words[0];
}

Status Train(Transport* transport, ProgressMonitor* monitor, const std::string& folder) {
  Progress& progress = monitor->progress();
  const int rank = transport->rank();
  const std::string hang = fmt::format("{}/hang.{}", folder, rank);
  for (uint64_t step = 0;; ++step) {
    const auto start = std::chrono::steady_clock::now();
    progress.BeginStep(step);
    progress.Enter(Phase::kBackward);
    std::this_thread::sleep_for(1ms);
    while (Exists(hang)) std::this_thread::sleep_for(1ms);
    const std::chrono::duration<double> compute = std::chrono::steady_clock::now() - start;

    progress.Enter(Phase::kExchange);
    const bool finish = rank == 0 && Exists(folder + "/finish");
    const StatusOr<uint64_t> agreed = Exchange(transport, step, finish ? 1 : 0);
    if (!agreed.ok()) {
      SayError("explained", monitor->Explain(agreed.status()));
      return agreed.status();
    }
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
    monitor->RecordStep(compute.count(), whole.count());
    if (step == 0) Say("training");
    if (*agreed == 1) return {};
  }
}

int Main(int rank, int world_size, const std::string& folder) {
  std::vector<std::string> addresses;
  for (int i = 0; i < world_size; ++i) addresses.push_back(fmt::format("unix:{}/{}", folder, i));
  auto listener = ListenGrpc(addresses[rank], {});
  if (!listener.ok()) return 1;
  const auto transport =
      (*listener)->Connect({.rank = rank, .generation = 1, .addresses = addresses});
  if (!transport.ok()) return 1;
  ProgressMonitor monitor(transport->get(), {.limits = {.silence_limit = 5s, .stall_limit = 5s},
                                             .on_end = [](const Verdict& verdict) {
                                               SayError("ended", verdict.status);
                                               // The training thread may be unable to; if it is
                                               // not, it is quicker.
                                               std::this_thread::sleep_for(500ms);
                                               _exit(kLostAPeer);
                                             }});
  const Status trained = Train(transport->get(), &monitor, folder);
  const Status stopped = monitor.Stop();
  if (!trained.ok() || !stopped.ok()) return kLostAPeer;
  Say("finished");
  return 0;
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) {
  return count == 4 ? ringtail::Main(std::atoi(arguments[1]), std::atoi(arguments[2]), arguments[3])
                    : 2;
}
