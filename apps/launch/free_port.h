// A port for rank 0 to listen on. Between the moment in which it is found and that in which rank 0
// listens, another program may take it; rank 0 then says so and ends. So it is none of those that
// the kernel gives to outgoing connections, of which a busy machine opens many, and it is drawn at
// random, as other launchers look for one at the same time.
// Thread-safety: a function without state. Cost: a few system calls.
#ifndef RINGTAIL_APPS_LAUNCH_FREE_PORT_H_
#define RINGTAIL_APPS_LAUNCH_FREE_PORT_H_

#include <string>
#include <utility>

#include "core/status.h"

namespace ringtail {

// A port on which nothing listens at the moment, on any address of this host.
StatusOr<int> FindFreePort();

// The first and the last port for outgoing connections: `text` is that of
// /proc/sys/net/ipv4/ip_local_port_range. Linux's default if it is anything else.
std::pair<int, int> OutgoingPorts(const std::string& text);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_FREE_PORT_H_
