#include "tests/dist/transport/wire_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "core/check.h"
#include "core/thread_budget.h"

namespace ringtail {
namespace {

sockaddr_in AddressOf(const std::string& ip, int port) {
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
  RT_CHECK(inet_pton(AF_INET, ip.c_str(), &address.sin_addr) == 1, "an IPv4 address");
  return address;
}

void SendAtOnce(int socket) {
  const int on = 1;
  RT_CHECK(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "TCP knows it");
}

}  // namespace

WireProxy::WireProxy(const std::string& ip, const std::string& target)
    : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in at = AddressOf(ip, 0);
  socklen_t length = sizeof(at);
  RT_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&at), length) == 0 &&
               listen(listener_, 1) == 0 &&
               getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &length) == 0,
           "loopback has free ports");
  address_ = ip + ":" + std::to_string(ntohs(at.sin_port));
  sockets_[kToListener] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const size_t colon = target.rfind(':');
  at = AddressOf(target.substr(0, colon), std::stoi(target.substr(colon + 1)));
  RT_CHECK(connect(sockets_[kToListener], reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0,
           "the target listens");
  SendAtOnce(sockets_[kToListener]);
  to_listener_ = std::thread([this] {
    SetThreadName("rt-proxy");
    sockets_[kToDialler] = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (sockets_[kToDialler] < 0) return;  // nobody has dialled
    SendAtOnce(sockets_[kToDialler]);
    to_dialler_ = std::thread([this] {
      SetThreadName("rt-proxy");
      Pass(kToDialler);
    });
    Pass(kToListener);
  });
}

WireProxy::~WireProxy() {
  // Shut down, every call on them returns.
  shutdown(listener_, SHUT_RDWR);
  shutdown(sockets_[kToListener], SHUT_RDWR);
  to_listener_.join();
  if (to_dialler_.joinable()) to_dialler_.join();
  for (const int socket : {listener_, sockets_[0], sockets_[1]}) {
    if (socket >= 0) close(socket);
  }
}

void WireProxy::Begin(Direction direction, Damage damage) {
  MutexLock lock(&mutex_);
  damage_[direction] = std::move(damage);
}

void WireProxy::Pass(Direction direction) {
  const int from = sockets_[1 - direction];
  std::vector<std::byte> bytes(kPieceBytes);
  for (ssize_t n = 1; n > 0;) {
    n = recv(from, bytes.data(), bytes.size(), 0);
    if (n <= 0 || !Forward(direction, {bytes.begin(), bytes.begin() + n})) break;
  }
  for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
}

bool WireProxy::Forward(Direction direction, std::vector<std::byte> bytes) {
  bool goes_on = true;
  {
    MutexLock lock(&mutex_);
    if (damage_[direction]) goes_on = damage_[direction](&bytes);
  }
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = send(sockets_[direction], bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return false;
    at += n;
  }
  return goes_on;
}

}  // namespace ringtail
