// The transport over gRPC: one process per rank, one stream per pair of ranks; two between hosts,
// so that urgent messages never wait behind data (grpc_transport.h).
//
// Every pair is connected at the start, not when it first has something to say: a rank that cannot
// be reached is named before the first step and not in the middle of a run, and every rank sees
// every death itself, as soon as the kernel reports it (a killed process: at once). It costs each
// rank at most 2 (world - 1) sockets, which is little up to some hundred ranks. Of two ranks the
// higher one dials.
//
// A stranger that dials and does not say a proper hello within seconds is turned away; so are a
// rank of another generation and one that does not know the world's secret. None disturbs the
// world.
//
// Threads: `io_threads` named "rt-grpc" that read, write and copy to the memory of Receives; one
// named "rt-door" that lets ranks in (doorkeeper.h); and, when the world ends, one named
// "rt-grpc-close". A Send is written by the thread that calls it, unless something else is being
// written to that peer. No gRPC type appears here.
#ifndef RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_LISTENER_H_
#define RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_LISTENER_H_

#include <memory>
#include <string>

#include "core/status.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

// At "127.0.0.1:0" (any free port), "[::1]:4000" or "unix:/run/user/1000/rank0.sock"; address() of
// the listener has the port that is really used. AlreadyExists: the port is in use.
StatusOr<std::unique_ptr<TransportListener>> ListenGrpc(const std::string& address,
                                                        const TransportOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_LISTENER_H_
