// A socket that can be accepted from. Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_TRANSPORT_DOOR_LISTENING_SOCKET_H_
#define RINGTAIL_DIST_TRANSPORT_DOOR_LISTENING_SOCKET_H_

#include <sys/socket.h>

#include <chrono>
#include <string>

#include "core/status.h"
#include "dist/transport/owned_descriptor.h"

namespace ringtail {

struct ListeningSocket {
  OwnedDescriptor socket;  // does not block
  int port = 0;            // that it really has
};

// `address`: "10.0.0.7:29500", "[fd00::7]:0" (any free port). Connections of the past do not count
// as users of the port. What is accepted sends at once (TCP_NODELAY), and is lost if the other host
// acknowledges nothing for `user_timeout` (TCP_USER_TIMEOUT): so gRPC sets up its own ports, too.
// The kernel asks a host that is silent whether it lives (SO_KEEPALIVE): that never waits behind
// data. AlreadyExists: the port is in use; else what the system says: of another host, no such
// address.
StatusOr<ListeningSocket> ListenAt(const std::string& address,
                                   std::chrono::milliseconds user_timeout);

// The next connection; its end does not block either. None, with errno, if there is none.
OwnedDescriptor AcceptFrom(const OwnedDescriptor& listening, sockaddr_storage* peer);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_DOOR_LISTENING_SOCKET_H_
