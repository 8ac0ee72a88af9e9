#include "dist/transport/transports.h"

#include <fmt/format.h>

#include "dist/transport/door/socket_address.h"
#include "dist/transport/grpc/grpc_listener.h"
#include "dist/transport/mpi/mpi_library.h"
#include "dist/transport/mpi/mpi_listener.h"

namespace ringtail {
namespace {

using ListenerOr = StatusOr<std::unique_ptr<TransportListener>>;

struct TransportKind {
  DistConfig::Transport kind;
  ListenerOr (*listen)(const std::string& address, const TransportOptions& options);
};

ListenerOr ListenGrpcAt(const std::string& address, const TransportOptions& options) {
  return ListenGrpc(JoinHostPort(address, 0), options);
}

// MPI knows by itself where the ranks are.
ListenerOr ListenMpiAnywhere(const std::string&, const TransportOptions& options) {
  return ListenMpi(options, OpenMpiPort);
}

constexpr TransportKind kTransports[] = {
    {DistConfig::GRPC, ListenGrpcAt},
    {DistConfig::MPI, ListenMpiAnywhere},
};

}  // namespace

StatusOr<std::unique_ptr<TransportListener>> ListenForPeers(DistConfig::Transport kind,
                                                            const std::string& address,
                                                            const TransportOptions& options) {
  for (const TransportKind& transport : kTransports) {
    if (transport.kind == kind) return transport.listen(address, options);
  }
  return FailedPrecondition(
      fmt::format("this build has no transport {}; dist.transport: GRPC works",
                  DistConfig::Transport_Name(kind)));
}

}  // namespace ringtail
