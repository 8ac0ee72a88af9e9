#include "dist/transport/door/listening_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace ringtail {
namespace {

// "[fd00::7]:80" as what bind(2) wants; at most one.
using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
AddressList Parse(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (colon == std::string::npos ||
      getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0) {
    found = nullptr;
  }
  return {found, freeaddrinfo};
}

int PortOf(int socket) {
  sockaddr_storage at{};
  socklen_t bytes = sizeof(at);
  getsockname(socket, reinterpret_cast<sockaddr*>(&at), &bytes);
  return ntohs(at.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(at).sin_port
                                       : reinterpret_cast<sockaddr_in6&>(at).sin6_port);
}

constexpr int kKeepaliveSeconds = 5;

bool Set(const OwnedDescriptor& socket, int level, int option, int value) {
  return setsockopt(socket.number(), level, option, &value, sizeof(value)) == 0;
}

}  // namespace

StatusOr<ListeningSocket> ListenAt(const std::string& address,
                                   std::chrono::milliseconds user_timeout) {
  const auto failed = [&](int error) {
    const Status status = ErrnoStatus(error, "cannot listen at " + address);
    return error == EADDRINUSE ? AlreadyExists(status.message()) : status;
  };
  const AddressList at = Parse(address);
  if (at == nullptr) return failed(EINVAL);
  OwnedDescriptor listening(socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (listening.number() < 0) return failed(errno);
  const auto timeout = static_cast<int>(user_timeout.count());
  if (!Set(listening, SOL_SOCKET, SO_REUSEADDR, 1) ||
      !Set(listening, IPPROTO_TCP, TCP_NODELAY, 1) ||
      !Set(listening, IPPROTO_TCP, TCP_USER_TIMEOUT, timeout) ||
      !Set(listening, SOL_SOCKET, SO_KEEPALIVE, 1) ||
      !Set(listening, IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveSeconds) ||
      !Set(listening, IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveSeconds) ||
      bind(listening.number(), at->ai_addr, at->ai_addrlen) != 0 ||
      listen(listening.number(), SOMAXCONN) != 0) {
    return failed(errno);
  }
  const int port = PortOf(listening.number());
  return ListeningSocket{.socket = std::move(listening), .port = port};
}

OwnedDescriptor AcceptFrom(const OwnedDescriptor& listening, sockaddr_storage* peer) {
  socklen_t bytes = sizeof(*peer);
  return OwnedDescriptor(accept4(listening.number(), reinterpret_cast<sockaddr*>(peer), &bytes,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC));
}

}  // namespace ringtail
