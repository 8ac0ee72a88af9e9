// A rank of a world over the real MPI, for tests; started by mpirun:
//
//   mpirun -np 3 dist_mpi_rank_main exchange       every pair exchanges messages of many sizes
//   mpirun -np 3 dist_mpi_rank_main abort          rank 1 stops with a sentence, the others hear it
//   mpirun -np 3 dist_mpi_rank_main wrong_rank     each takes itself for its neighbour
//
// Prints a line of its own: "rank 2: <what happened>".
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "dist/transport/mpi/mpi_library.h"
#include "dist/transport/mpi/mpi_transport.h"

namespace ringtail {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSizes[] = {0, 1, 63, 4096, kMiB - 4, 5 * kMiB, 33 * kMiB};

int Number(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? -1 : std::atoi(text);
}

void Say(int rank, const std::string& what) {
  const std::string line = "rank " + std::to_string(rank) + ": " + what + "\n";
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

uint8_t Pattern(size_t i, int from, int to) { return static_cast<uint8_t>(i * 31 + from * 7 + to); }

MessageLabel Label(uint64_t collective, bool urgent) {
  const uint64_t channel = urgent ? kUrgentChannel : 0;
  return {.tag = {.collective = channel << kChannelShift | collective}, .check = 5};
}

// All messages of this rank under way at once, half of their receives posted late.
Status Exchange(Transport* transport) {
  struct Message {
    std::vector<std::byte> sent, received;
  };
  const int world = transport->world_size(), me = transport->rank();
  std::vector<Message> messages;
  for (int peer = 0; peer < world; ++peer) {
    if (peer == me) continue;
    for (const size_t bytes : kSizes) {
      Message message{std::vector<std::byte>(bytes), std::vector<std::byte>(bytes)};
      for (size_t i = 0; i < bytes; ++i) message.sent[i] = std::byte{Pattern(i, me, peer)};
      messages.push_back(std::move(message));
    }
  }
  CompletionQueue queue;
  const auto each = [&](auto&& start) {
    size_t index = 0;
    for (int peer = 0; peer < world; ++peer) {
      if (peer == me) continue;
      for (size_t size = 0; size < std::size(kSizes); ++size) {
        start(peer, Label(size, /*urgent=*/kSizes[size] == 63), size, &messages[index++]);
      }
    }
  };
  const auto receive = [&](bool even) {
    each([&](int peer, const MessageLabel& label, size_t size, Message* message) {
      if ((size % 2 == 0) == even) transport->Receive(peer, label, message->received, {&queue});
    });
  };
  receive(true);
  each([&](int peer, const MessageLabel& label, size_t, Message* message) {
    transport->Send(peer, label, message->sent, {&queue});
  });
  receive(false);
  for (size_t i = 0; i < 2 * messages.size(); ++i) {
    Completion completion;
    const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    if (!queue.Next(&completion, deadline)) return Internal("a message does not come");
    if (!completion.status.ok()) return completion.status;
  }
  Status status;
  each([&](int peer, const MessageLabel&, size_t size, Message* message) {
    for (size_t i = 0; i < message->received.size(); ++i) {
      if (message->received[i] != std::byte{Pattern(i, peer, me)}) {
        status = Internal("a wrong byte in message " + std::to_string(size));
      }
    }
  });
  return status;
}

// Rank 1 stops; what the others' pending Receive ends with.
Status HearOfAbort(Transport* transport) {
  if (transport->rank() == 1) {
    transport->Abort(Internal("rank 1 has had enough"));
    return {};
  }
  CompletionQueue queue;
  std::vector<std::byte> memory(8);
  transport->Receive(1, Label(0, false), memory, {&queue});
  Completion completion;
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  if (!queue.Next(&completion, deadline)) return Internal("nothing is heard of it");
  return completion.status;
}

int Main(const std::string& task) {
  const int rank = Number("OMPI_COMM_WORLD_RANK"), world = Number("OMPI_COMM_WORLD_SIZE");
  const bool wrong = task == "wrong_rank";
  const auto listener = ListenMpi("127.0.0.1:0", {}, OpenMpiPort);
  StatusOr<std::unique_ptr<Transport>> transport =
      listener->Connect({.rank = wrong ? (rank + 1) % world : rank,
                         .generation = 9,
                         .addresses = std::vector(world, listener->address())});
  if (!transport.ok()) {
    Say(rank, transport.status().message());
    return wrong ? 3 : 1;
  }
  const Status status =
      task == "abort" ? HearOfAbort(transport->get()) : Exchange(transport->get());
  Say(rank, status.ok() ? "all is well" : status.message());
  return 0;
}

}  // namespace
}  // namespace ringtail

int main(int argc, char** argv) { return ringtail::Main(argc > 1 ? argv[1] : "exchange"); }
