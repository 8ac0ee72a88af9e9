// RendezvousVisitor: the rendezvous' end of one stream; a rank, or a stranger.
//
//        dialled          hello                facts, sealed            listening_at
//   kNew ───────> kHello ────────> kFacts ───────────────────> kRank ───────────────> kRank
//                         challenge       wrong seal: turned away      welcome, listen_at, world
//   turned away: nonsense, a wrong token, or not a rank within kStrangerLimit of dialling
//
// Until its facts are here and sealed with the job's token it is a stranger: what it holds of our
// memory is this object and one message of at most 4 KiB.
//
// Thread-safety: all on the thread of the rendezvous' queue. Whatever gRPC has under way for it
// holds a reference to it.
#ifndef RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_VISITOR_H_
#define RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_VISITOR_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "dist/membership/conversation.h"
#include "dist/membership/identity/rank_facts.h"
#include "dist/membership/membership.grpc.pb.h"

namespace ringtail {

class RendezvousVisitor : public std::enable_shared_from_this<RendezvousVisitor> {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    virtual void OnVisitor() = 0;  // it has dialled
    virtual void OnFacts(
        const std::shared_ptr<RendezvousVisitor>& visitor) = 0;  // proved, complete
    // After OnFacts: what else it says.
    virtual void OnMessage(RendezvousVisitor* visitor, const RendezvousMessage& message) = 0;
    // Is a stranger, and is gone.
    virtual void OnTurnedAway(RendezvousVisitor* visitor, const Status& why) = 0;
    virtual void OnEnd(RendezvousVisitor* visitor) = 0;  // has said and heard everything, or broke

    virtual const std::string& token() const = 0;
    virtual uint32_t generation() const = 0;
  };

  RendezvousVisitor(Host* host, grpc::ServerCompletionQueue* queue);
  ~RendezvousVisitor() = default;
  RendezvousVisitor(const RendezvousVisitor&) = delete;
  RendezvousVisitor& operator=(const RendezvousVisitor&) = delete;

  // Waits for the next to dial.
  void Accept(RendezvousService::AsyncService* service);

  void Say(const RendezvousMessage& message);
  // And nothing after it; the stream then ends.
  void SayLast(const RendezvousMessage& message);
  // Has the host look at its facts once more after a while.
  void AskAgainIn(std::chrono::milliseconds pause);
  bool asked_again() const { return asked_again_; }
  // The other end is gone.
  bool gone() const { return end_.has_value(); }
  // Ends the stream at once.
  void Cancel() { context_.TryCancel(); }

  bool is_rank() const { return state_ == State::kRank; }
  const RankFacts& facts() const { return facts_; }        // of a rank
  std::string Address() const { return context_.peer(); }  // "ipv4:10.0.0.7:41234"

  std::string asked_to_listen_at;  // the host's own note

 private:
  enum class State { kNew, kHello, kFacts, kRank };

  template <typename Function>
  void* Tag(Function function);
  void OnDialled();
  void Read();
  void OnRead(bool ok);
  Status OnHello(const RendezvousMessage& message);
  Status OnFactsPart(const RendezvousMessage& message);
  void TurnAway(const Status& why);
  void Put(SealedMessage message);
  void WriteNext();
  void EndWith(const grpc::Status& status);
  void Finish();

  Host* const host_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<SealedMessage, SealedMessage> stream_;
  grpc::Alarm limit_, pause_;
  State state_ = State::kNew;
  SealedMessage incoming_;
  Conversation conversation_;
  PieceCollector pieces_{kMaxFactsBytes};
  RankFacts facts_;
  std::deque<SealedMessage> outgoing_;
  bool asked_again_ = false;
  bool writing_ = false;
  bool last_ = false;                // what is to be said last is in outgoing_, or has been written
  std::optional<grpc::Status> end_;  // how the stream ends; nothing is said any more
  bool finished_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_VISITOR_H_
