#include "dist/membership/rendezvous_client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "core/stop_signal.h"
#include "dist/membership/conversation.h"
#include "dist/membership/membership.grpc.pb.h"
#include "dist/membership/security/tls_check.h"
#include "dist/transport/frames/keyed_hash.h"
#include "dist/transport/grpc/grpc_server.h"

namespace ringtail {
namespace {

// For an answer to the first messages; a rendezvous that lives has it at once.
constexpr std::chrono::seconds kAnswerLimit{10};
// After the rendezvous should have given up, and said so.
constexpr std::chrono::seconds kSlack{5};
constexpr std::chrono::seconds kExplainLimit{2};
constexpr std::chrono::hours kLongestWait{24};

// A stream on which one thing is under way at a time, with a deadline. Told to stop, it takes that
// for now.
class BlockingStream {
 public:
  BlockingStream(const std::string& address, const TransportOptions& options)
      : stub_(RendezvousService::NewStub(DialGrpc(address, options))) {}
  ~BlockingStream() {
    context_.TryCancel();
    if (call_ != nullptr && !finished_) Finish();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  BlockingStream(const BlockingStream&) = delete;
  BlockingStream& operator=(const BlockingStream&) = delete;

  bool Start(Deadline deadline) {
    call_ = stub_->PrepareAsyncJoin(&context_, &queue_);
    call_->StartCall(this);
    return Await(deadline);
  }
  bool Write(const SealedMessage& message, Deadline deadline) {
    call_->Write(message, this);
    return Await(deadline);
  }
  bool Read(SealedMessage* message, Deadline deadline) {
    call_->Read(message, this);
    return Await(deadline);
  }
  // Why a call above was false. At once: the stream has ended, or is cancelled.
  grpc::Status Finish() {
    finished_ = true;
    call_->Finish(&status_, this);
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return status_;
  }
  bool timed_out() const { return timed_out_; }

 private:
  bool Await(Deadline deadline) {
    void* tag = nullptr;
    bool ok = false;
    do {
      const auto left = std::max<Deadline::duration>(
          NextLookForStop(deadline) - std::chrono::steady_clock::now(), Deadline::duration::zero());
      if (queue_.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + left) ==
          grpc::CompletionQueue::GOT_EVENT) {
        return ok;
      }
    } while (StopSignal() == 0 && std::chrono::steady_clock::now() < deadline);
    timed_out_ = true;
    context_.TryCancel();
    queue_.Next(&tag, &ok);
    return false;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  const std::unique_ptr<RendezvousService::Stub> stub_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<SealedMessage, SealedMessage>> call_;
  grpc::Status status_;
  bool timed_out_ = false, finished_ = false;
};

class Client {
 public:
  explicit Client(const RendezvousRequest& request)
      : request_(request),
        at_(fmt::format("rank 0 at {}", request.address)),
        stream_(request.address, request.wire),
        deadline_(std::min(request.deadline, std::chrono::steady_clock::now() + kAnswerLimit)) {}

  RendezvousAnswer Run() {
    if (!Greet() || !SayFacts()) return Broken();
    SealedMessage sealed;
    while (stream_.Read(&sealed, deadline_)) {
      const StatusOr<RendezvousMessage> message = conversation_.Open(sealed);
      if (!message.ok()) {
        return Final(message.status().Annotate(at_ + " said something that it cannot have said"));
      }
      RendezvousAnswer answer;
      if (OnMessage(*message, &answer)) return answer;
    }
    return Broken();
  }

 private:
  static RendezvousAnswer Final(const Status& status) { return {.status = status}; }

  bool Greet() {
    RendezvousMessage hello;
    hello.mutable_hello()->set_nonce(RandomBytes(kNonceBytes));
    hello.mutable_hello()->set_rank(request_.facts.rank);
    hello.mutable_hello()->set_world_size(request_.facts.world_size);
    const SealedMessage sent = Conversation::Unsealed(hello);
    SealedMessage challenge;
    if (!stream_.Start(deadline_) || !stream_.Write(sent, deadline_) ||
        !stream_.Read(&challenge, deadline_)) {
      return false;
    }
    conversation_.Begin(Session::Side::kRank, request_.token, sent, challenge);
    return true;
  }

  bool SayFacts() {
    bool ok = true;
    CutIntoPieces(EncodeFacts(request_.facts), [&](RendezvousPart part) {
      RendezvousMessage message;
      *message.mutable_facts() = std::move(part);
      ok = ok && Say(message);
    });
    // What the other end has said before it hung up can still be read.
    return ok || !stream_.timed_out();
  }

  bool Say(const RendezvousMessage& message) {
    return stream_.Write(conversation_.Seal(message), deadline_);
  }

  // True: `answer` is what comes of it.
  bool OnMessage(const RendezvousMessage& message, RendezvousAnswer* answer) {
    if (message.has_refusal()) {
      *answer = Final(StatusOfRefusal(message.refusal()));
    } else if (message.has_welcome()) {
      welcome_ = true;
      const std::chrono::milliseconds remaining(message.welcome().remaining_ms());
      deadline_ = std::chrono::steady_clock::now() +
                  std::min<std::chrono::milliseconds>(remaining, kLongestWait) + kSlack;
      return false;
    } else if (message.kind_case() == RendezvousMessage::kListenAt) {
      return !Listen(message.listen_at(), answer);
    } else if (message.has_world()) {
      const StatusOr<bool> complete = world_.Add(message.world());
      if (complete.ok() && !*complete) return false;
      answer->status = complete.ok() ? ReadWorld(&answer->world) : complete.status();
    } else {
      *answer = Final(DataLoss(at_ + " said something unexpected"));
    }
    return true;
  }

  bool Listen(const std::string& address, RendezvousAnswer* answer) {
    const StatusOr<std::string> listening = request_.listen(address);
    RendezvousMessage message;
    if (listening.ok()) {
      message.set_listening_at(*listening);
      if (!Say(message)) *answer = Broken();
      return answer->status.ok();
    }
    // All ranks are to know; the answer is the resulting refusal.
    const Status status = listening.status().Annotate(request_.facts.Describe());
    if (!Say(RefusalMessage(status))) *answer = Final(status);
    return answer->status.ok();
  }

  Status ReadWorld(WorldTable* world) {
    RT_ASSIGN_OR_RETURN(*world, DecodeWorldTable(world_.bytes()));
    if (static_cast<int>(world->ranks.size()) != request_.facts.world_size) {
      return DataLoss(at_ + " has told of another world");
    }
    return {};
  }

  // The stream has ended without an answer.
  RendezvousAnswer Broken() {
    if (Status stopped = CheckNotStopped(); !stopped.ok()) return Final(stopped);
    if (stream_.timed_out()) return Silent();
    const grpc::Status status = stream_.Finish();
    switch (status.error_code()) {
      case grpc::StatusCode::PERMISSION_DENIED:
        return Final({StatusCode::kPermissionDenied,
                      fmt::format("{} turned rank {} away, because it has another token: all ranks "
                                  "of a job need the same (RINGTAIL_TOKEN, RINGTAIL_TOKEN_FILE or "
                                  "--token-file)",
                                  at_, request_.facts.rank)});
      case grpc::StatusCode::UNIMPLEMENTED:
        return Final(FailedPrecondition(
            fmt::format("what listens at {} is no rendezvous of a job: is it the right port?",
                        request_.address)));
      case grpc::StatusCode::INVALID_ARGUMENT:
        return Final(InvalidArgument(fmt::format("{} turned rank {} away: {}", at_,
                                                 request_.facts.rank, status.error_message())));
      default:
        break;
    }
    if (welcome_) {
      return Final({StatusCode::kUnavailable,
                    fmt::format("lost {} while rank {} waited for the others: {}", at_,
                                request_.facts.rank, status.error_message())});
    }
    return Unexplained(status.error_message());
  }

  RendezvousAnswer Silent() const {
    return {.status = {StatusCode::kDeadlineExceeded, fmt::format("{} does not answer", at_)},
            .final = welcome_};
  }

  // gRPC says "Socket closed" for everything.
  RendezvousAnswer Unexplained(const std::string& what_grpc_says) const {
    const auto limit = std::chrono::steady_clock::now() + kExplainLimit;
    const std::string why = ExplainTlsFailure(request_.rendezvous, request_.wire.tls, limit);
    if (!why.empty()) {
      return Final(FailedPrecondition(
          fmt::format("rank {} cannot talk to {}: {}", request_.facts.rank, at_, why)));
    }
    return {.status = {StatusCode::kUnavailable, fmt::format("{}: {}", at_, what_grpc_says)},
            .final = false};
  }

  const RendezvousRequest& request_;
  const std::string at_;
  BlockingStream stream_;
  Deadline deadline_;
  Conversation conversation_;
  PieceCollector world_{kMaxWorldTableBytes};
  bool welcome_ = false;
};

}  // namespace

RendezvousAnswer AskRendezvous(const RendezvousRequest& request) { return Client(request).Run(); }

}  // namespace ringtail
