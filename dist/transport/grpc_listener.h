// The parts of a GrpcListener that ConnectGrpc takes over, and how channels are made.
#ifndef RINGTAIL_DIST_TRANSPORT_GRPC_LISTENER_H_
#define RINGTAIL_DIST_TRANSPORT_GRPC_LISTENER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "dist/transport/grpc_stream.h"
#include "dist/transport/grpc_transport.h"

namespace ringtail {

class GrpcServer : public GrpcListener {
 public:
  explicit GrpcServer(const GrpcOptions& with) : options(with) {}
  ~GrpcServer() override;
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  const std::string& address() const override { return bound_address; }

  const GrpcOptions options;
  std::string bound_address;
  GrpcStream::RawService service;
  // For dialled streams, too: one queue and its threads do all.
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::Server> server;
};

// For a connection to get through the handshakes of TLS and HTTP/2, and then to say who it is.
inline constexpr std::chrono::seconds kStrangerLimit{5};

// What every server of ours has: TLS if there are certificates, limits for strangers, keepalive,
// and a port of its own. Starts gRPC if nobody has yet.
void ConfigureGrpcServer(const std::string& address, const GrpcOptions& options,
                         grpc::ServerBuilder* builder, int* port);

// A connection of its own: closed with the channel, never shared or silently made again.
std::shared_ptr<grpc::Channel> DialGrpc(const std::string& address, const GrpcOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_GRPC_LISTENER_H_
