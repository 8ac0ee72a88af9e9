// RoutedTransport: a wire between all ranks, and shared memory between those of one host.
//
//   Send to a rank of this host   ──> PeerMessages ──> SharedMemory (rings)
//   Send to any other rank        ──> the wire's transport
//   Abort, goodbye, lost peers    ──> the wire's transport, which tells us (TransportObserver)
//
// Any wire will do: after it has connected, each pair of ranks of one host agrees over it:
//
//   rank 0                          rank 1
//     offer (a segment) ─────────────> maps it
//     maps it <─────────────────────── offer
//     mapped or not ─────────────────>
//     <─────────────────────────────── mapped or not          both have: frames go through memory
//
// A pair that cannot share memory stays on the wire, with a warning in the log.
#ifndef RINGTAIL_DIST_TRANSPORT_ROUTED_TRANSPORT_H_
#define RINGTAIL_DIST_TRANSPORT_ROUTED_TRANSPORT_H_

#include <chrono>
#include <memory>

#include "core/status.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

// As TransportListener::Connect; pairs with the same PeerTable::memory_keys share memory. The pairs
// of this rank must agree within `limit` after the wire has connected (DeadlineExceeded). Without
// such pairs it is the wire's transport itself.
StatusOr<std::unique_ptr<Transport>> ConnectRouted(
    TransportListener* wire, const PeerTable& peers,
    std::chrono::milliseconds limit = TransportOptions().connect_timeout);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_ROUTED_TRANSPORT_H_
