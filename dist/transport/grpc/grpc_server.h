// GrpcServer: a gRPC server at a port that ranks dial, and how servers and channels of ours are
// configured.
#ifndef RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_SERVER_H_
#define RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <climits>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"
#include "dist/transport/door/grpc_door.h"
#include "dist/transport/grpc/grpc_stream.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

// TransportOptions::keepalive_time of a connection that gRPC never probes.
inline constexpr std::chrono::milliseconds kNoKeepalive{INT_MAX};

// Thread-safety: one thread, but for the gRPC objects.
class GrpcServer {
 public:
  // Started, but with its door closed.
  static StatusOr<std::unique_ptr<GrpcServer>> Listen(const std::string& address,
                                                      const TransportOptions& options);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  const TransportOptions options;
  GrpcStream::RawService service;
  // For dialled streams, too: one queue and its threads do everything.
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<GrpcDoor> door;

 private:
  explicit GrpcServer(const TransportOptions& with) : options(with) {}
};

// Configures `builder` as every server of ours: a port of its own with a doorkeeper, TLS if there
// are certificates, limits for strangers, keepalive. Starts gRPC in this process if need be.
// AlreadyExists: the port is in use.
StatusOr<std::unique_ptr<GrpcDoor>> ConfigureGrpcServer(const std::string& address,
                                                        const TransportOptions& options,
                                                        grpc::ServerBuilder* builder);

// Whether traffic to and from `address`, as ListenGrpc takes it, never sees a wire: a file, or
// loopback. A machine's own address on a network counts as the network.
bool StaysInThisMachine(std::string_view address);

// A connection of its own: closed with the channel, never shared or silently made again.
std::shared_ptr<grpc::Channel> DialGrpc(const std::string& address,
                                        const TransportOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_SERVER_H_
