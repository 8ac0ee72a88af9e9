// GrpcDoor: the address of a gRPC server: a port with a doorkeeper, which hands connections that
// begin as ranks' do over to gRPC. A file ("unix:/...") is gRPC's own: the file system decides who
// may dial there. Thread-safety: Proved any thread, the rest one thread.
#ifndef RINGTAIL_DIST_TRANSPORT_DOOR_GRPC_DOOR_H_
#define RINGTAIL_DIST_TRANSPORT_DOOR_GRPC_DOOR_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "core/status.h"
#include "dist/transport/door/doorkeeper.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

// The time for a stranger to begin as a rank does, at the door; for a connection to complete gRPC's
// handshakes; and for a stream to say who it is.
inline constexpr std::chrono::seconds kStrangerLimit{5};

class GrpcDoor {
 public:
  // For the server that `builder` makes.
  static StatusOr<std::unique_ptr<GrpcDoor>> Listen(const std::string& address,
                                                    const TransportOptions& options,
                                                    grpc::ServerBuilder* builder);
  const std::string& address() const { return address_; }  // with the port that is really used

  // Once the server has started, and its owner waits for streams.
  void Open();
  // Before the server shuts down.
  void Close();
  // The connection from `peer` (ServerContext::peer()) is a rank's; others have to go soon.
  void Proved(const std::string& peer);

 private:
  std::string address_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> gate_;  // none: a file
  std::unique_ptr<Doorkeeper> keeper_;  // goes first: it uses the gate
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_DOOR_GRPC_DOOR_H_
