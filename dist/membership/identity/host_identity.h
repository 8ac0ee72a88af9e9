// What this machine is called, and which ranks are on the same one.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_MEMBERSHIP_IDENTITY_HOST_IDENTITY_H_
#define RINGTAIL_DIST_MEMBERSHIP_IDENTITY_HOST_IDENTITY_H_

#include <string>

namespace ringtail {

// For people; nobody dials it.
std::string HostName();

// Equal on two ranks exactly if they run on one kernel and share its network interfaces: the boot's
// identity and that of the network namespace. Containers with networks of their own count as hosts
// of their own, as their traffic leaves through a wire of its own.
std::string HostKey();

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_IDENTITY_HOST_IDENTITY_H_
