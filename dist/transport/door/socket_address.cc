#include "dist/transport/door/socket_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "core/machine/thread_budget.h"
#include "core/mutex.h"
#include "core/stop_signal.h"

namespace ringtail {
namespace {

struct LookUp {
  Mutex mutex;
  ConditionVariable changed;
  bool done RT_GUARDED_BY(mutex) = false;
  int error RT_GUARDED_BY(mutex) = 0;
  std::vector<SocketAddress> found RT_GUARDED_BY(mutex);
};

std::string NumericAddress(const sockaddr_storage& storage) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* address = &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr;
  if (storage.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
    address = &v6->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
      return fmt::format("{}.{}.{}.{}", v6->sin6_addr.s6_addr[12], v6->sin6_addr.s6_addr[13],
                         v6->sin6_addr.s6_addr[14], v6->sin6_addr.s6_addr[15]);
    }
  }
  if (inet_ntop(storage.ss_family, address, text.data(), text.size()) == nullptr) return "";
  return text.data();
}

// The resolver has timeouts of its own, and no way to stop it. So it has a thread of its own, which
// no caller waits for longer than the deadline, and which owns what it writes to.
void LookUpName(const std::string& host, int port, const std::shared_ptr<LookUp>& look_up) {
  SetThreadName("rt-resolve");
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &list);
  std::vector<SocketAddress> found;
  for (const addrinfo* at = list; error == 0 && at != nullptr; at = at->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.bytes = at->ai_addrlen;
    address.address = NumericAddress(address.storage);
    found.push_back(std::move(address));
  }
  if (error == 0) freeaddrinfo(list);
  MutexLock lock(&look_up->mutex);
  look_up->error = error;
  look_up->found = std::move(found);
  look_up->done = true;
  look_up->changed.NotifyAll();
}

Status ConnectError(int error, const SocketAddress& to) {
  const std::string message = fmt::format("{}: {}", to.address, std::strerror(error));
  const bool no_way = error == ENETUNREACH || error == EAFNOSUPPORT || error == EADDRNOTAVAIL ||
                      error == EINVAL || error == EACCES || error == EPERM;
  return {no_way ? StatusCode::kFailedPrecondition : StatusCode::kUnavailable, message};
}

}  // namespace

std::string JoinHostPort(std::string_view address, int port) {
  const bool brackets = address.find(':') != std::string_view::npos;
  return brackets ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

bool IsNumericAddress(const std::string& host) {
  in6_addr ignored{};
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

bool IsLoopbackAddress(const std::string& address) {
  in_addr v4{};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, address.c_str(), &v6) != 1) return false;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return v6.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6);
}

bool IsLoopbackHost(const std::string& host) {
  if (IsNumericAddress(host)) return IsLoopbackAddress(host);
  return host == "localhost" || host.ends_with(".localhost") || host == "ip6-localhost" ||
         host == "ip6-loopback" || host == "localhost.localdomain";
}

StatusOr<std::vector<SocketAddress>> ResolveHost(const std::string& host, int port,
                                                 Deadline deadline) {
  const auto look_up = std::make_shared<LookUp>();
  std::thread(LookUpName, host, port, look_up).detach();
  MutexLock lock(&look_up->mutex);
  while (!look_up->done && std::chrono::steady_clock::now() < deadline) {
    RT_RETURN_IF_ERROR(CheckNotStopped());
    look_up->changed.WaitUntil(&look_up->mutex, NextLookForStop(deadline));
  }
  if (!look_up->done) return NotFound(fmt::format("no name server has said what {} is", host));
  if (look_up->error != 0) {
    return NotFound(fmt::format("{}: {}", host, gai_strerror(look_up->error)));
  }
  return std::move(look_up->found);
}

StatusOr<OwnedDescriptor> ConnectSocket(const SocketAddress& to, Deadline deadline) {
  OwnedDescriptor socket(
      ::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (socket.number() < 0) return ConnectError(errno, to);
  if (connect(socket.number(), reinterpret_cast<const sockaddr*>(&to.storage), to.bytes) == 0) {
    return socket;
  }
  if (errno != EINPROGRESS) return ConnectError(errno, to);
  for (;;) {
    RT_RETURN_IF_ERROR(CheckNotStopped());
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return ConnectError(ETIMEDOUT, to);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(NextLookForStop(deadline) - now);
    pollfd ready{.fd = socket.number(), .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, static_cast<int>(left.count())) > 0) break;
  }
  int error = 0;
  socklen_t bytes = sizeof(error);
  getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  if (error != 0) return ConnectError(error, to);
  return socket;
}

Status TryToListen(const SocketAddress& at) {
  const OwnedDescriptor socket(
      ::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
  if (socket.number() < 0) return ErrnoStatus(errno, at.address);
  const int yes = 1;  // as gRPC does: connections of the past do not count
  setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&at.storage), at.bytes) != 0 ||
      listen(socket.number(), 1) != 0) {
    return ErrnoStatus(errno, at.address);
  }
  return {};
}

std::string OwnAddress(const OwnedDescriptor& connected) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(storage);
  if (getsockname(connected.number(), reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) {
    return "";
  }
  return NumericAddress(storage);
}

}  // namespace ringtail
