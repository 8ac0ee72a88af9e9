// Which process listens at a port of this machine, for the error that says that the port is in use.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_MEMBERSHIP_PORT_HOLDER_H_
#define RINGTAIL_DIST_MEMBERSHIP_PORT_HOLDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringtail {

// "pid 4711 (dogs_vs_cats)"; empty if none listens there, or one whose files we may
// not look at. Reads /proc: milliseconds.
std::string PortHolder(int port);

// The inodes of the sockets that listen at `port`, in the text of /proc/net/tcp or tcp6.
std::vector<uint64_t> ListeningInodes(std::string_view table, int port);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_PORT_HOLDER_H_
