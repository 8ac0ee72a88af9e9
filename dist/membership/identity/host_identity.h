// What this machine is called, and which ranks are on the same one.
// Thread-safety: functions without state, but for that of tests.
#ifndef RINGTAIL_DIST_MEMBERSHIP_IDENTITY_HOST_IDENTITY_H_
#define RINGTAIL_DIST_MEMBERSHIP_IDENTITY_HOST_IDENTITY_H_

#include <string>

namespace ringtail {

// For messages; it is not dialled.
std::string HostName();

// Equal on two ranks exactly if they run on one kernel and share its network interfaces: the
// identity of the boot and of the network namespace. Containers with networks of their own count as
// hosts of their own, as their traffic leaves through a wire of its own.
std::string HostKey();

// Ranks with the same key can share memory: same boot of the same machine, same process and network
// namespace, same user. (Ranks in different network namespaces could share memory, too; such a
// namespace stands for another host, in containers and in tests.) Empty: not known.
std::string SharedMemoryKey();

// From now on this process counts as on a host of its own, together with processes of the same `key`:
// it has other keys than the machine's. Before other threads start.
void SetHostKeyForTest(const std::string& key);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_IDENTITY_HOST_IDENTITY_H_
