// Rank 1 of a world of two, in a process of its own, for tests that kill or stop it:
//
//   dist_transport_rank_main ADDRESS_OF_RANK_0 [MEMORY [sends]]
//
// MEMORY: "shared", "cannot_make" (shared, but this process may not make any), "cannot_map" (it may
// not map its peer's). Prints its own address, and "connected" once it is; then waits for a message
// that never comes, or sends messages of 1 MiB, collective 0, 1, ...: all bytes are that number.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "dist/membership/identity/host_identity.h"
#include "dist/transport/grpc/grpc_listener.h"
#include "dist/transport/routed_transport.h"

namespace ringtail {
namespace {

// From now on system call `number` fails with EPERM if its second argument is `second`, as in many
// a sandbox.
bool Forbid(uint32_t number, uint32_t second) {
  constexpr auto kLoad = BPF_LD | BPF_W | BPF_ABS;
  constexpr auto kIfEqual = BPF_JMP | BPF_JEQ | BPF_K;
  std::array<sock_filter, 6> filter = {{
      BPF_STMT(kLoad, offsetof(seccomp_data, nr)),
      BPF_JUMP(kIfEqual, number, 0, 3),
      BPF_STMT(kLoad, offsetof(seccomp_data, args[1])),
      BPF_JUMP(kIfEqual, second, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int SendForever(Transport* transport) {
  CompletionQueue queue;
  std::vector<std::byte> message(1 << 20);
  for (uint64_t i = 0;; ++i) {
    std::ranges::fill(message, static_cast<std::byte>(i));
    transport->Send(0, {.tag = {.collective = i}}, message, {.queue = &queue});
    Completion completion;
    const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    if (!queue.Next(&completion, deadline) || !completion.status.ok()) return 3;
  }
}

int WaitForever(Transport* transport) {
  CompletionQueue queue;
  std::vector<std::byte> memory(1);
  transport->Receive(0, {.tag = {.collective = 1'000'000}}, memory, {.queue = &queue});
  Completion completion;
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  return queue.Next(&completion, deadline) && !completion.status.ok() ? 3 : 1;
}

int Main(const std::vector<std::string>& arguments) {
  const std::string memory = arguments.size() > 1 ? arguments[1] : "";
  if (memory == "cannot_make" && !Forbid(SYS_memfd_create, MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    return 1;
  }
  if (memory == "cannot_map" && !Forbid(SYS_fcntl, F_GET_SEALS)) return 1;
  auto listener = ListenGrpc("127.0.0.1:0", {});
  if (!listener.ok()) return 1;
  const std::vector<std::string> addresses{arguments[0], (*listener)->address()};
  std::puts(addresses[1].c_str());
  std::fflush(stdout);
  const std::string host = memory.empty() ? "" : SharedMemoryKey();
  const auto transport = ConnectRouted(
      listener->get(), {.rank = 1, .addresses = addresses, .memory_keys = {host, host}});
  if (!transport.ok()) return 1;
  std::puts("connected");
  std::fflush(stdout);
  return arguments.size() > 2 ? SendForever(transport->get()) : WaitForever(transport->get());
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) {
  if (count < 2) return 2;
  return ringtail::Main(std::vector<std::string>(arguments + 1, arguments + count));
}
