#include "dist/transport/door/unproven.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "dist/transport/owned_descriptor.h"

namespace ringtail {
namespace {

// For gRPC to see that a connection has been shut down, and to close it.
constexpr std::chrono::milliseconds kLookAgain{10};

// 0: it is no socket, or closed.
uint64_t CookieOf(int descriptor) {
  uint64_t cookie = 0;
  socklen_t bytes = sizeof(cookie);
  if (getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) != 0) return 0;
  return cookie;
}

std::string Name(const in6_addr& address, int port) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET, &address.s6_addr[12], text.data(), text.size());
    return fmt::format("{}:{}", text.data(), port);
  }
  inet_ntop(AF_INET6, &address, text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), port);
}

// "%5B" is "[".
std::string Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
      decoded += static_cast<char>(code);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

}  // namespace

std::string ConnectionName(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(v4.sin_port));
  }
  if (peer.ss_family != AF_INET6) return "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  return Name(v6.sin6_addr, ntohs(v6.sin6_port));
}

std::string ConnectionNameOfGrpc(std::string_view peer) {
  if (peer.starts_with("ipv4:")) return std::string(peer.substr(5));
  if (!peer.starts_with("ipv6:")) return "";
  const std::string text = Decoded(peer.substr(5));
  const size_t end = text.rfind("]:");
  if (!text.starts_with('[') || end == std::string::npos) return "";
  std::string address = text.substr(1, end - 1);
  address = address.substr(0, address.find('%'));  // without the interface of fe80::1%2
  in6_addr parsed{};
  int port = 0;
  std::from_chars(text.data() + end + 2, text.data() + text.size(), port);
  if (inet_pton(AF_INET6, address.c_str(), &parsed) != 1) return "";
  return Name(parsed, port);
}

void Unproven::Add(int descriptor, const std::string& name, Clock::time_point deadline) {
  MutexLock lock(&mutex_);
  // The connection that had the name is gone, and so is the one that had the number.
  std::erase_if(connections_, [&](const Connection& other) {
    return other.name == name || other.descriptor == descriptor;
  });
  connections_.push_back({.descriptor = descriptor,
                          .cookie = CookieOf(descriptor),
                          .name = name,
                          .deadline = deadline});
}

void Unproven::Proved(const std::string& name) {
  MutexLock lock(&mutex_);
  std::erase_if(connections_, [&](const Connection& other) { return other.name == name; });
}

void Unproven::ShutDown(Connection* connection) {
  const OwnedDescriptor same(fcntl(connection->descriptor, F_DUPFD_CLOEXEC, 0));
  if (same.number() < 0) return;  // closed, or no descriptor is left: to be tried again
  connection->shut_down = true;
  if (CookieOf(same.number()) == connection->cookie) shutdown(same.number(), SHUT_RDWR);
}

std::optional<Unproven::Clock::time_point> Unproven::Sweep(Clock::time_point now) {
  MutexLock lock(&mutex_);
  std::erase_if(connections_, [](const Connection& connection) {
    return CookieOf(connection.descriptor) != connection.cookie;
  });
  std::optional<Clock::time_point> next;
  for (Connection& connection : connections_) {
    if (connection.deadline <= now && !connection.shut_down) ShutDown(&connection);
    const bool over = connection.shut_down || connection.deadline <= now;
    const auto look = over ? now + kLookAgain : connection.deadline;
    next = std::min(next.value_or(look), look);
  }
  return next;
}

size_t Unproven::count() {
  MutexLock lock(&mutex_);
  return connections_.size();
}

void Unproven::ShutDownOldest() {
  MutexLock lock(&mutex_);
  const bool under_way = std::any_of(connections_.begin(), connections_.end(),
                                     [](const Connection& other) { return other.shut_down; });
  if (!under_way && !connections_.empty()) ShutDown(&connections_.front());
}

}  // namespace ringtail
