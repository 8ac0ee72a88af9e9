#include "dist/transport/mpi/mpi_transport.h"

#include <thread>
#include <utility>

#include "core/status.h"
#include "dist/transport/frames/control_payload.h"
#include "dist/transport/mpi/mpi_engine.h"
#include "dist/transport/operation.h"

namespace ringtail {
namespace {

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(std::shared_ptr<MpiEngine> engine) : engine_(std::move(engine)) {}
  ~MpiTransport() override {
    engine_->Leave();
    if (thread_.joinable()) thread_.join();
  }

  Status Connect() {
    thread_ = std::thread([engine = engine_] { engine->Run(); });
    Status begin = engine_->AwaitBegin();
    // It may be in MPI_Init for ever; what it uses is its own.
    if (!begin.ok()) thread_.detach();
    return begin;
  }

  int rank() const override { return engine_->peers().rank; }
  int world_size() const override { return engine_->peers().world_size(); }

  void Abort(const Status& cause) override { engine_->End(cause, AbortSeenByPeer(rank(), cause)); }
  Status EndCause() const override { return engine_->ending()->cause(); }

 private:
  void StartSend(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                 CompletionTarget done) override {
    const Status status =
        engine_->messages(peer, label.tag)
            .Send(std::make_shared<SendOperation>(peer, label, bytes, done, engine_->ending()));
    if (!status.ok()) Abort(status);
    engine_->Wake();
  }

  void StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                    CompletionTarget done) override {
    const Status status =
        engine_->messages(peer, label.tag)
            .Receive({.peer = peer, .label = label, .buffer = buffer, .done = done});
    if (!status.ok()) Abort(status);
    engine_->Wake();
  }

  Traffic TrafficWith(int peer) const override { return engine_->traffic(peer); }

  const std::shared_ptr<MpiEngine> engine_;
  std::thread thread_;
};

class MpiListener : public TransportListener {
 public:
  MpiListener(const std::string& address, const MpiLimits& limits, MpiPortOpener open)
      : address_(address), limits_(limits), open_(std::move(open)) {}

  const std::string& address() const override { return address_; }

  StatusOr<std::unique_ptr<Transport>> Connect(const PeerTable& peers,
                                               TransportObserver* observer) override {
    auto transport = std::make_unique<MpiTransport>(
        std::make_shared<MpiEngine>(peers, limits_, open_, observer));
    RT_RETURN_IF_ERROR(transport->Connect());
    return std::unique_ptr<Transport>(std::move(transport));
  }

 private:
  const std::string address_;
  const MpiLimits limits_;
  const MpiPortOpener open_;
};

}  // namespace

std::unique_ptr<TransportListener> ListenMpi(const std::string& address, const MpiLimits& limits,
                                             MpiPortOpener open) {
  return std::make_unique<MpiListener>(address, limits, std::move(open));
}

}  // namespace ringtail
