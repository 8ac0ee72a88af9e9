#include "tests/dist/transport/wire_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/machine/thread_budget.h"

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

// Bytes are to wait at the ranks and not here.
void HoldLittle(int socket) {
  const int bytes = 16 << 10;
  RT_CHECK(setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) == 0 &&
               setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == 0,
           "sockets have buffers");
}

}  // namespace

WireProxy::WireProxy(const std::string& ip, const std::string& target)
    : target_(target), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in at = AddressOf(ip, 0);
  socklen_t length = sizeof(at);
  RT_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&at), length) == 0 &&
               listen(listener_, 8) == 0 &&
               getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &length) == 0,
           "loopback has free ports");
  address_ = ip + ":" + std::to_string(ntohs(at.sin_port));
  acceptor_ = std::thread([this] {
    SetThreadName("rt-proxy");
    Accept();
  });
}

int WireProxy::Dial() const {
  const int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const size_t colon = target_.rfind(':');
  const sockaddr_in at = AddressOf(target_.substr(0, colon), std::stoi(target_.substr(colon + 1)));
  RT_CHECK(connect(to, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0,
           "the target listens");
  SendAtOnce(to);
  return to;
}

void WireProxy::Accept() {
  for (;;) {
    const int from = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (from < 0) return;
    SendAtOnce(from);
    MutexLock lock(&mutex_);
    if (ending_) {
      close(from);
      return;
    }
    Connection& connection = connections_.emplace_back();
    connection.sockets[kToDialler] = from;
    connection.sockets[kToListener] = Dial();
    if (bytes_per_second_ > 0) {
      for (const int socket : connection.sockets) HoldLittle(socket);
    }
    const auto pass = [this, &connection](Direction direction) {
      SetThreadName("rt-proxy");
      Pass(&connection, direction);
    };
    connection.to_dialler = std::thread(pass, kToDialler);
    connection.to_listener = std::thread(pass, kToListener);
  }
}

WireProxy::~WireProxy() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    bytes_per_second_ = 0;
    // Shut down, every call on them returns.
    shutdown(listener_, SHUT_RDWR);
    for (const Connection& connection : connections_) {
      for (const int socket : connection.sockets) shutdown(socket, SHUT_RDWR);
    }
  }
  acceptor_.join();
  std::list<Connection> connections;
  {
    MutexLock lock(&mutex_);
    connections.swap(connections_);
  }
  for (Connection& connection : connections) {
    connection.to_dialler.join();
    connection.to_listener.join();
    for (const int socket : connection.sockets) close(socket);
  }
  close(listener_);
}

void WireProxy::Begin(Direction direction, Damage damage) {
  MutexLock lock(&mutex_);
  damage_[direction] = std::move(damage);
  const auto lives = [](const Connection& connection) { return !connection.ended; };
  const auto first = std::find_if(connections_.begin(), connections_.end(), lives);
  if (data_ == nullptr && first != connections_.end()) data_ = &*first;
}

void WireProxy::Slow(int64_t bytes_per_second) {
  MutexLock lock(&mutex_);
  bytes_per_second_ = bytes_per_second;
}

void WireProxy::Pass(Connection* connection, Direction direction) {
  const int from = connection->sockets[1 - direction];
  std::vector<std::byte> bytes(kPieceBytes);
  for (ssize_t n = 1; n > 0;) {
    n = recv(from, bytes.data(), bytes.size(), 0);
    if (n <= 0) break;
    WaitForTurn(direction, n);
    if (!Forward(*connection, direction, {bytes.begin(), bytes.begin() + n})) break;
  }
  for (const int socket : connection->sockets) shutdown(socket, SHUT_RDWR);
  MutexLock lock(&mutex_);
  connection->ended = true;
}

// Until the wire has carried what came before.
void WireProxy::WaitForTurn(Direction direction, size_t bytes) {
  Clock::time_point turn;
  {
    MutexLock lock(&mutex_);
    if (bytes_per_second_ == 0) return;
    Clock::time_point& free_at = free_at_[direction];
    const std::chrono::duration<double> takes(static_cast<double>(bytes) /
                                              static_cast<double>(bytes_per_second_));
    free_at = std::max(free_at, Clock::now()) + std::chrono::duration_cast<Clock::duration>(takes);
    turn = free_at;
  }
  std::this_thread::sleep_until(turn);
}

bool WireProxy::Forward(const Connection& connection, Direction direction,
                        std::vector<std::byte> bytes) {
  bool goes_on = true;
  {
    MutexLock lock(&mutex_);
    if (damage_[direction] && &connection == data_) goes_on = damage_[direction](&bytes);
  }
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n =
        send(connection.sockets[direction], bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return false;
    at += n;
  }
  return goes_on;
}

}  // namespace ringtail
