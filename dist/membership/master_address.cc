#include "dist/membership/master_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace ringtail {
namespace {

std::string Addresses(const std::vector<SocketAddress>& addresses) {
  std::string list;
  for (const SocketAddress& address : addresses) {
    list += (list.empty() ? "" : ", ") + address.address;
  }
  return list;
}

}  // namespace

StatusOr<std::string> AddressToListenAt(const std::string& host, Deadline deadline) {
  RT_ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses, ResolveHost(host, 0, deadline));
  Status failed;
  for (const SocketAddress& at : addresses) {
    const Status status = TryToListen(at);
    if (!status.ok()) {
      failed = status;
      continue;
    }
    const bool means_more = IsLoopbackAddress(at.address) && !IsLoopbackHost(host);
    if (!means_more) return at.address;
    return std::string(at.storage.ss_family == AF_INET6 ? "::" : "0.0.0.0");
  }
  return FailedPrecondition(fmt::format(
      "the address of rank 0, {}{}, is none of this host, where rank 0 runs ({})", host,
      IsNumericAddress(host) ? "" : " (" + Addresses(addresses) + ")", failed.message()));
}

StatusOr<WayToMaster> FindMaster(const std::string& host, int port, Deadline deadline) {
  RT_ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses,
                      ResolveHost(host, port, deadline));
  Status failed;
  for (const SocketAddress& address : addresses) {
    const StatusOr<OwnedDescriptor> socket = ConnectSocket(address, deadline);
    if (socket.ok()) return WayToMaster{.master = address, .own_address = OwnAddress(*socket)};
    // "Connection refused" at one address says more than "no route" to another.
    if (failed.ok() || failed.code() == StatusCode::kFailedPrecondition) failed = socket.status();
  }
  if (failed.code() != StatusCode::kFailedPrecondition) return failed;
  const bool only_v6 = std::all_of(addresses.begin(), addresses.end(), [](const auto& address) {
    return address.storage.ss_family == AF_INET6;
  });
  return failed.Annotate(only_v6 ? "it has an IPv6 address alone, and this host has no way there"
                                 : "this host has no way there");
}

}  // namespace ringtail
