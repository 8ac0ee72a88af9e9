#include "dist/transport/mpi/mpi_listener.h"

#include <string>
#include <utility>

#include "core/status.h"

namespace ringtail {
namespace {

class MpiListener : public TransportListener {
 public:
  MpiListener(std::chrono::milliseconds connect_timeout, std::chrono::milliseconds leave_timeout,
              MpiPortOpener open)
      : connect_timeout_(connect_timeout), leave_timeout_(leave_timeout), open_(std::move(open)) {}

  const std::string& address() const override { return address_; }

  StatusOr<std::unique_ptr<Transport>> Connect(const PeerTable& peers,
                                               TransportObserver* observer) override {
    return ConnectMpi({.rank = peers.rank,
                       .world_size = peers.world_size(),
                       .generation = peers.generation,
                       .hosts = peers.memory_keys,
                       .connect_timeout = connect_timeout_,
                       .leave_timeout = leave_timeout_},
                      open_, observer);
  }

 private:
  const std::string address_ = "MPI";
  const std::chrono::milliseconds connect_timeout_, leave_timeout_;
  const MpiPortOpener open_;
};

}  // namespace

std::unique_ptr<TransportListener> ListenMpi(const TransportOptions& options, MpiPortOpener open,
                                             std::chrono::milliseconds leave_timeout) {
  return std::make_unique<MpiListener>(options.connect_timeout, leave_timeout, std::move(open));
}

}  // namespace ringtail
