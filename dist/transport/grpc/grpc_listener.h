// The parts of a GrpcListener that ConnectGrpc takes over, and how channels are made.
#ifndef RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_LISTENER_H_
#define RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_LISTENER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <climits>
#include <memory>
#include <string>
#include <string_view>

#include "dist/transport/door/doorkeeper.h"
#include "dist/transport/grpc/grpc_stream.h"
#include "dist/transport/grpc/grpc_transport.h"

namespace ringtail {

// For a stranger to begin as a rank does, at the door; for a connection to get through gRPC's
// handshakes; and for a stream to say who it is.
inline constexpr std::chrono::seconds kStrangerLimit{5};

// GrpcOptions::keepalive_time of a connection on which gRPC never asks whether the peer lives.
inline constexpr std::chrono::milliseconds kNoKeepalive{INT_MAX};

// Where ranks come to a gRPC server: a port with a doorkeeper, who hands the connections of those
// who begin as ranks do over to gRPC. A file ("unix:/...") is gRPC's own: the file system says who
// may dial there.
class GrpcDoor {
 public:
  // For `builder`'s server.
  static StatusOr<std::unique_ptr<GrpcDoor>> Listen(const std::string& address,
                                                    const GrpcOptions& options,
                                                    grpc::ServerBuilder* builder);
  const std::string& address() const { return address_; }  // with the port that is really used

  // Once the server has started, and its owner waits for streams.
  void Open();
  // Before the server shuts down.
  void Close();
  // Whoever dialled from `peer` (ServerContext::peer()) is a rank; others have to go soon.
  void Proved(const std::string& peer);

 private:
  std::string address_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> gate_;  // none: a file
  std::unique_ptr<Doorkeeper> keeper_;  // goes first: it uses the gate
};

class GrpcServer : public GrpcListener {
 public:
  explicit GrpcServer(const GrpcOptions& with) : options(with) {}
  ~GrpcServer() override;
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  const std::string& address() const override { return door->address(); }

  const GrpcOptions options;
  GrpcStream::RawService service;
  // For dialled streams, too: one queue and its threads do all.
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<GrpcDoor> door;
};

// What every server of ours has: a port of its own with a doorkeeper, TLS if there are certificates,
// limits for strangers, keepalive. Starts gRPC if nobody has yet. AlreadyExists: the port is in
// use.
StatusOr<std::unique_ptr<GrpcDoor>> ConfigureGrpcServer(const std::string& address,
                                                        const GrpcOptions& options,
                                                        grpc::ServerBuilder* builder);

// Whether what is sent to or from `address`, as GrpcListener::Listen takes it, never sees a wire: a
// file, or loopback. A machine's own address on a network counts as the network.
bool StaysInThisMachine(std::string_view address);

// A connection of its own: closed with the channel, never shared or silently made again.
std::shared_ptr<grpc::Channel> DialGrpc(const std::string& address, const GrpcOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_LISTENER_H_
