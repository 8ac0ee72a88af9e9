// One rank of a world that outlives its losses, for tests that kill or stop it:
//
//   dist_tolerant_rank_main RANK WORLD FOLDER memory|wire
//
// Rank 0 serves: it answers every word of every other rank, which has to be the next. Sockets are in
// FOLDER; "memory": the ranks share memory beside them. If there is a file "finish" there, rank 0
// says so in its answers, and all end. Each rank prints "running" after its first answer, "lost N"
// for each loss, and "finished" at the end; errors go to stderr. Exit code 75 if its own part in the
// world has ended before.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dist/liveness/progress_monitor.h"
#include "dist/membership/identity/host_identity.h"
#include "dist/transport/grpc/grpc_listener.h"
#include "dist/transport/routed_transport.h"

namespace ringtail {
namespace {

using namespace std::chrono_literals;

constexpr int kLostAPeer = 75;
constexpr uint32_t kAsk = 0, kAnswer = 1;

void Say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void SayError(const Status& status) { std::fputs((status.ToString() + "\n").c_str(), stderr); }

class SaysLosses : public PeerLossObserver {
 public:
  void OnPeerLost(int peer, const Status& cause) override {
    Say(fmt::format("lost {}", peer));
    SayError(cause);
  }
};

MessageLabel Label(uint64_t round, uint32_t step) {
  return {.tag = {.collective = round, .step = step}};
}

template <typename T>
std::span<std::byte> Bytes(T* value) {
  return std::as_writable_bytes(std::span(value, 1));
}

// Until all others are lost, or have heard that it is time to finish.
Status Serve(Transport* transport, const std::string& folder) {
  struct Client {
    uint64_t round = 0, asked = 0;
    std::array<uint64_t, 2> answer{};  // is it time to finish; round
    bool answering = false;
  };
  std::vector<Client> clients(transport->world_size());
  CompletionQueue queue;
  const auto expect = [&](int peer) {
    transport->Receive(peer, Label(clients[peer].round, kAsk), Bytes(&clients[peer].asked),
                       {&queue, static_cast<uint64_t>(peer)});
  };
  int left = transport->world_size() - 1;
  for (int peer = 1; peer <= left; ++peer) expect(peer);
  bool first = true;
  while (left > 0) {
    Completion completion;
    if (!queue.Next(&completion, std::chrono::steady_clock::now() + 5min)) std::abort();
    if (!transport->EndCause().ok()) return transport->EndCause();
    const int peer = static_cast<int>(completion.id);
    Client& client = clients[peer];
    if (!completion.status.ok()) {
      --left;
      continue;
    }
    client.answering = !client.answering;
    if (!client.answering) {  // the answer is on its way
      if (client.answer[0] == 1) {
        --left;
      } else {
        ++client.round;
        expect(peer);
      }
      continue;
    }
    if (client.asked != client.round) return Internal("a word that was lost or came twice");
    struct stat unused {};
    client.answer = {stat((folder + "/finish").c_str(), &unused) == 0 ? 1u : 0u, client.round};
    transport->Send(peer, Label(client.round, kAnswer), Bytes(&client.answer),
                    {&queue, completion.id});
    if (std::exchange(first, false)) Say("running");
  }
  return {};
}

Status Ask(Transport* transport, Progress* progress) {
  CompletionQueue queue;
  for (uint64_t round = 0;; ++round) {
    progress->BeginStep(round);
    progress->Enter(Phase::kForward);
    std::this_thread::sleep_for(1ms);
    const ScopedPhase blocked(progress, Phase::kBlocked);
    std::array<uint64_t, 2> answer{};
    transport->Receive(0, Label(round, kAnswer), Bytes(&answer), {&queue, 0});
    transport->Send(0, Label(round, kAsk), Bytes(&round), {&queue, 1});
    Status status;
    for (int i = 0; i < 2; ++i) {
      Completion completion;
      if (!queue.Next(&completion, std::chrono::steady_clock::now() + 5min)) std::abort();
      if (status.ok()) status = completion.status;
    }
    RT_RETURN_IF_ERROR(status);
    if (answer[1] != round) return Internal("the answer to another word");
    if (round == 0) Say("running");
    if (answer[0] == 1) return {};
  }
}

int Main(int rank, int world_size, const std::string& folder, bool memory) {
  std::vector<std::string> addresses;
  for (int i = 0; i < world_size; ++i) addresses.push_back(fmt::format("unix:{}/{}", folder, i));
  auto listener = ListenGrpc(addresses[rank], {});
  if (!listener.ok()) return 1;
  const auto transport =
      ConnectRouted(listener->get(), {.rank = rank,
                                      .generation = 1,
                                      .addresses = addresses,
                                      .memory_keys = std::vector<std::string>(
                                          world_size, memory ? SharedMemoryKey() : std::string())});
  if (!transport.ok()) return 1;
  ProgressMonitor monitor(transport->get(), {.limits = {.silence_limit = 5s, .stall_limit = 5s},
                                             .on_end = [](const Verdict& verdict) {
                                               SayError(verdict.status);
                                               std::this_thread::sleep_for(500ms);
                                               _exit(kLostAPeer);
                                             }});
  if (!monitor.TolerateLosses(std::make_shared<SaysLosses>()).ok()) return 1;
  if (rank == 0) monitor.progress().Enter(Phase::kBlocked);
  const Status ran =
      rank == 0 ? Serve(transport->get(), folder) : Ask(transport->get(), &monitor.progress());
  if (!ran.ok()) SayError(ran);
  const Status stopped = monitor.Stop();
  if (!ran.ok() || !stopped.ok()) return kLostAPeer;
  Say("finished");
  return 0;
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) {
  if (count != 5) return 2;
  return ringtail::Main(std::atoi(arguments[1]), std::atoi(arguments[2]), arguments[3],
                        std::string(arguments[4]) == "memory");
}
