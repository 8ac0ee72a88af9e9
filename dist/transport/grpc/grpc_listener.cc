#include "dist/transport/grpc/grpc_listener.h"

#include <utility>

#include "core/check.h"
#include "dist/transport/grpc/grpc_server.h"
#include "dist/transport/grpc/grpc_transport.h"

namespace ringtail {
namespace {

class GrpcListener : public TransportListener {
 public:
  explicit GrpcListener(std::unique_ptr<GrpcServer> server)
      : server_(std::move(server)), address_(server_->door->address()) {}

  const std::string& address() const override { return address_; }

  StatusOr<std::unique_ptr<Transport>> Connect(const PeerTable& peers,
                                               TransportObserver* observer) override {
    RT_CHECK(server_ != nullptr, "a listener connects once");
    RT_CHECK(peers.rank >= 0 && peers.rank < peers.world_size(), "this rank is one of the world's");
    auto transport = std::make_unique<GrpcTransport>(std::move(server_), peers, observer);
    RT_RETURN_IF_ERROR(transport->Connect());
    return std::unique_ptr<Transport>(std::move(transport));
  }

 private:
  std::unique_ptr<GrpcServer> server_;  // none once connected
  const std::string address_;
};

}  // namespace

StatusOr<std::unique_ptr<TransportListener>> ListenGrpc(const std::string& address,
                                                        const TransportOptions& options) {
  RT_ASSIGN_OR_RETURN(auto server, GrpcServer::Listen(address, options));
  return std::unique_ptr<TransportListener>(new GrpcListener(std::move(server)));
}

}  // namespace ringtail
