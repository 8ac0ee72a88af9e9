// Addresses of sockets: what a name means here, and which end of a connection is ours.
//
// Why ranks do not just tell each other their host names: Debian writes "127.0.1.1 node7" into
// node7's own /etc/hosts, so that a rank that looks its own name up tells the others to dial
// themselves. The address of a socket that is connected to rank 0 is one that works.
//
// "Address" is numeric and without port: "10.0.0.7", "fd00::7".
// Thread-safety: any thread. Every wait has a deadline, and ends with Cancelled soon
// after the process was told to stop (core/stop_signal.h).
#ifndef RINGTAIL_DIST_TRANSPORT_DOOR_SOCKET_ADDRESS_H_
#define RINGTAIL_DIST_TRANSPORT_DOOR_SOCKET_ADDRESS_H_

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "dist/transport/owned_descriptor.h"

namespace ringtail {

using Deadline = std::chrono::steady_clock::time_point;

std::string JoinHostPort(std::string_view address, int port);  // "10.0.0.7:80", "[fd00::7]:80"

bool IsNumericAddress(const std::string& host);
bool IsLoopbackAddress(const std::string& address);  // 127.0.0.0/8, ::1, ::ffff:127.0.0.1
// Whether `host` can only mean this machine: a loopback address, or localhost. A name that
// /etc/hosts gives a loopback address is not: it means another address on every other machine.
bool IsLoopbackHost(const std::string& host);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  std::string address;  // of `storage`
};

// The addresses of `host`, in the order in which to try them. NotFound: it is not known, or there
// is no answer by `deadline`.
StatusOr<std::vector<SocketAddress>> ResolveHost(const std::string& host, int port,
                                                 Deadline deadline);

// A connected socket, non-blocking. Unavailable: nothing listens, or there is no answer by
// `deadline`; FailedPrecondition: this host has no way to such an address.
StatusOr<OwnedDescriptor> ConnectSocket(const SocketAddress& to, Deadline deadline);

// OK if this host can listen at `at` (with any port if that of `at` is 0); the system's error else.
Status TryToListen(const SocketAddress& at);

std::string OwnAddress(const OwnedDescriptor& connected);  // of our end

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_DOOR_SOCKET_ADDRESS_H_
