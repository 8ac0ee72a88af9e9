#include "dist/transport/door/grpc_door.h"

#include <utility>

#include "dist/transport/grpc/grpc_credentials.h"

namespace ringtail {
namespace {

// For strangers inside, besides all ranks, which come at once.
constexpr size_t kRoomForStrangers = 64;

}  // namespace

StatusOr<std::unique_ptr<GrpcDoor>> GrpcDoor::Listen(const std::string& address,
                                                     const TransportOptions& options,
                                                     grpc::ServerBuilder* builder) {
  std::unique_ptr<GrpcDoor> door(new GrpcDoor);
  door->address_ = address;
  const auto credentials = ServerCredentialsFor(options.tls);
  if (address.starts_with("unix:")) {
    builder->AddListeningPort(address, credentials);
    return door;
  }
  RT_ASSIGN_OR_RETURN(door->keeper_,
                      Doorkeeper::Listen({.address = address,
                                          .tls = !options.tls.empty(),
                                          .limit = kStrangerLimit,
                                          .user_timeout = options.keepalive_timeout,
                                          .room_inside = options.peers + kRoomForStrangers}));
  door->address_ =
      address.substr(0, address.rfind(':') + 1) + std::to_string(door->keeper_->port());
  door->gate_ = builder->experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  return door;
}

void GrpcDoor::Open() {
  if (keeper_ == nullptr) return;
  keeper_->Open([gate = gate_.get()](int descriptor) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = descriptor;
    gate->HandleNewConnection(&connection);
  });
}

void GrpcDoor::Close() {
  if (keeper_ != nullptr) keeper_->Close();
}

void GrpcDoor::Proved(const std::string& peer) {
  if (keeper_ != nullptr) keeper_->Proved(peer);
}

}  // namespace ringtail
