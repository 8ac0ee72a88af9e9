#include "dist/transport/transports.h"

#include <fmt/format.h>

#include "dist/transport/door/socket_address.h"
#include "dist/transport/grpc/grpc_listener.h"
#include "dist/transport/mpi/mpi_library.h"
#include "dist/transport/mpi/mpi_transport.h"

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

ListenerOr ListenMpiAt(const std::string& address, const TransportOptions& options) {
  return ListenMpi(JoinHostPort(address, 0), {.connect = options.connect_timeout}, OpenMpiPort);
}

constexpr TransportKind kTransports[] = {
    {DistConfig::GRPC, ListenGrpcAt},
    {DistConfig::MPI, ListenMpiAt},
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
