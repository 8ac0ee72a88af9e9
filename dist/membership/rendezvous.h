// The RendezvousServer that RendezvousServer::Start makes; private to it.
#ifndef RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_H_
#define RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "dist/membership/rendezvous_server.h"
#include "dist/membership/rendezvous_visitor.h"
#include "dist/membership/roster.h"
#include "dist/transport/door/log_limiter.h"
#include "dist/transport/grpc/grpc_server.h"

namespace ringtail {

class Rendezvous : public RendezvousServer, public RendezvousVisitor::Host {
 public:
  explicit Rendezvous(const Options& options);
  ~Rendezvous() override;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  Status Listen();
  void AwaitRefusals(std::chrono::milliseconds grace) override RT_EXCLUDES(mutex_);

  // ---- on the queue's thread ----
  void OnVisitor() override;
  void OnFacts(const std::shared_ptr<RendezvousVisitor>& visitor) override;
  void OnMessage(RendezvousVisitor* visitor, const RendezvousMessage& message) override;
  void OnTurnedAway(RendezvousVisitor* visitor, const Status& why) override;
  void OnEnd(RendezvousVisitor* visitor) override;
  const std::string& token() const override { return options_.token; }
  uint32_t generation() const override { return options_.facts.generation; }

 private:
  void AcceptNext();
  Status CheckNewcomer(const RankFacts& facts) const;
  void AskToListen();
  void TellWorld();
  void Fail(const Status& why);

  Mutex mutex_;
  ConditionVariable changed_;
  std::set<int> told_ RT_GUARDED_BY(mutex_);  // ranks that have been refused
  // With something of gRPC's under way; of them are all that are waiting.
  int visitors_ RT_GUARDED_BY(mutex_) = 0;

  const Options options_;
  const std::chrono::steady_clock::time_point deadline_;
  const std::string salt_;
  RendezvousService::AsyncService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<GrpcDoor> door_;
  grpc::Alarm timer_;
  std::thread thread_;

  // Used by the queue's thread only.
  Roster roster_;
  std::vector<std::shared_ptr<RendezvousVisitor>> waiting_;  // by rank
  bool formed_ = false;
  Status failed_;
  LogLimiter turned_away_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_H_
