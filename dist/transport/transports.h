// The kinds of transport that a config can choose (dist.transport). The table in transports.cc is
// the only list of them. Thread-safety: a function without state.
#ifndef RINGTAIL_DIST_TRANSPORT_TRANSPORTS_H_
#define RINGTAIL_DIST_TRANSPORT_TRANSPORTS_H_

#include <memory>
#include <string>

#include "core/status.h"
#include "dist/dist.pb.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

// Listens at any port of `address`, which is one of this host ("10.0.0.7", "fd00::7").
// FailedPrecondition if this build does not have the kind.
StatusOr<std::unique_ptr<TransportListener>> ListenForPeers(DistConfig::Transport kind,
                                                            const std::string& address,
                                                            const TransportOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_TRANSPORTS_H_
