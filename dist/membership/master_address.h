// Rank 0's address, as each rank sees it: where rank 0 listens, and how the others get there.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_MEMBERSHIP_MASTER_ADDRESS_H_
#define RINGTAIL_DIST_MEMBERSHIP_MASTER_ADDRESS_H_

#include <string>

#include "core/status.h"
#include "dist/transport/door/socket_address.h"

namespace ringtail {

// The address of this host that `host` means, for rank 0 to listen at: that address alone, and not
// all interfaces. The exception is a name that means loopback here and something else everywhere
// else (Debian's 127.0.1.1): then it is all interfaces, "0.0.0.0", because it is not known here by
// which one the others will come. FailedPrecondition if `host` is none of this host's addresses.
StatusOr<std::string> AddressToListenAt(const std::string& host, Deadline deadline);

struct WayToMaster {
  SocketAddress master;     // which of the addresses of its name it is
  std::string own_address;  // of our end of a connection to it
};

// Finds the way by connecting once, and hangs up again. NotFound: the name is not known;
// FailedPrecondition: there is no way to such an address from here; Unavailable: nothing listens.
StatusOr<WayToMaster> FindMaster(const std::string& host, int port, Deadline deadline);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_MASTER_ADDRESS_H_
