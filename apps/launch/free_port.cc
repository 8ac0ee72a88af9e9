#include "apps/launch/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

namespace ringtail {
namespace {

constexpr int kFirstPort = 10000, kLastPort = 65535;
constexpr int kDraws = 100;

// The number of `port`, or of any that is free if it is 0, if a program may listen there.
StatusOr<int> TryPort(int port) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t length = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      file >= 0 && bind(file, any, length) == 0 && getsockname(file, any, &length) == 0;
  const int error = errno;
  if (file >= 0) close(file);
  if (!found) return ErrnoStatus(error, "cannot find a free port");
  return ntohs(address.sin_port);
}

}  // namespace

std::pair<int, int> OutgoingPorts(const std::string& text) {
  constexpr std::pair<int, int> kDefault{32768, 60999};
  std::istringstream numbers(text);
  std::pair<int, int> range;
  if (!(numbers >> range.first >> range.second)) return kDefault;
  return range.first > 0 && range.first <= range.second ? range : kDefault;
}

StatusOr<int> FindFreePort() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  const auto outgoing =
      OutgoingPorts({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  std::random_device random;
  std::uniform_int_distribution<int> any(kFirstPort, kLastPort);
  for (int draw = 0; draw < kDraws; ++draw) {
    const int port = any(random);
    if (port >= outgoing.first && port <= outgoing.second) continue;
    if (auto found = TryPort(port); found.ok()) return found;
  }
  return TryPort(0);  // of machines that give nearly all ports to outgoing connections
}

}  // namespace ringtail
