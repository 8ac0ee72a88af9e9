#include "dist/membership/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/logging.h"
#include "core/machine/thread_budget.h"
#include "dist/membership/conversation.h"
#include "dist/membership/port_holder.h"
#include "dist/transport/door/socket_address.h"
#include "dist/transport/frames/keyed_hash.h"
#include "dist/transport/grpc/grpc_server.h"
#include "dist/transport/grpc/grpc_stream.h"

namespace ringtail {
namespace {

// The time for the end of a connection to be noticed.
constexpr std::chrono::milliseconds kDuplicatePatience{1000};
// The time for gRPC to let go of everything, once nothing is connected any more.
constexpr std::chrono::seconds kShutdownLimit{10};

Status WhyNotListening(const std::string& at, int port, const Status& status) {
  const std::string holder = PortHolder(port);
  if (holder.empty()) return {status.code(), "rank 0 " + status.message()};
  return AlreadyExists(
      fmt::format("rank 0 cannot listen at {}: {} does so already; choose another port for the job "
                  "(MASTER_PORT), or end that process",
                  at, holder));
}

}  // namespace

StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Start(const Options& options) {
  auto server = std::make_unique<Rendezvous>(options);
  RT_RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<RendezvousServer>(std::move(server));
}

Rendezvous::Rendezvous(const Options& options)
    : options_(options),
      deadline_(std::chrono::steady_clock::now() + options.join_timeout),
      salt_(RandomBytes(kNonceBytes)),
      roster_(options.facts),
      waiting_(options.facts.world_size) {}

Status Rendezvous::Listen() {
  grpc::ServerBuilder builder;
  const std::string at = JoinHostPort(options_.address, options_.port);
  auto door = ConfigureGrpcServer(at, options_.wire, &builder);
  if (!door.ok()) return WhyNotListening(at, options_.port, door.status());
  door_ = *std::move(door);
  builder.SetMaxReceiveMessageSize(kMaxRendezvousMessageBytes);
  builder.RegisterService(&service_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return Internal("gRPC does not listen at " + at);
  timer_.Set(queue_.get(), std::chrono::system_clock::now() + options_.join_timeout,
             NewGrpcTag([this](bool expired) {
               if (expired && !formed_) Fail(roster_.Missing(options_.join_timeout));
             }));
  AcceptNext();
  thread_ = std::thread([this] {
    SetThreadName("rt-join");
    RunGrpcCallbacks(queue_.get());
  });
  door_->Open();
  return {};
}

// Whatever is under way ends with the server, and lets go of its visitor; only then may the queue
// be shut down, since until then a visitor may still start something.
Rendezvous::~Rendezvous() {
  if (door_ != nullptr) door_->Close();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  timer_.Cancel();
  if (thread_.joinable()) {
    const auto deadline = std::chrono::steady_clock::now() + kShutdownLimit;
    MutexLock lock(&mutex_);
    while (visitors_ > 0 && changed_.WaitUntil(&mutex_, deadline)) {
    }
  }
  if (queue_ != nullptr) queue_->Shutdown();
  if (thread_.joinable()) {
    thread_.join();
  } else if (queue_ != nullptr) {
    RunGrpcCallbacks(queue_.get());
  }
}

void Rendezvous::AwaitRefusals(std::chrono::milliseconds grace) {
  const auto deadline = std::chrono::steady_clock::now() + grace;
  MutexLock lock(&mutex_);
  while (static_cast<int>(told_.size()) < options_.facts.world_size) {
    if (!changed_.WaitUntil(&mutex_, deadline)) return;
  }
}

void Rendezvous::AcceptNext() {
  {
    MutexLock lock(&mutex_);
    ++visitors_;
  }
  const auto forget = [this](RendezvousVisitor* visitor) {
    delete visitor;
    MutexLock lock(&mutex_);
    --visitors_;
    changed_.NotifyAll();
  };
  const std::shared_ptr<RendezvousVisitor> next(new RendezvousVisitor(this, queue_.get()), forget);
  next->Accept(&service_);
}

// The door bounds how many visitors have not proved that they are ranks (grpc_door.cc).
void Rendezvous::OnVisitor() { AcceptNext(); }

void Rendezvous::OnTurnedAway(RendezvousVisitor* visitor, const Status& why) {
  if (const auto note = turned_away_.Allow()) {
    LogWarning(fmt::format("the rendezvous turned away {}: {}{}", visitor->Address(), why.message(),
                           *note));
  }
}

// Errors that end the newcomer's attempt alone: it belongs to another time.
Status Rendezvous::CheckNewcomer(const RankFacts& facts) const {
  if (facts.generation != 0 && facts.generation != generation()) {
    return FailedPrecondition(
        fmt::format("this is generation {} of the job, not {}", generation(), facts.generation));
  }
  if (!formed_) return {};
  const RankFacts* const there = roster_.Find(facts.rank);
  return AlreadyExists(fmt::format(
      "{} comes too late: the job has all its {} ranks{}", facts.Describe(), roster_.world_size(),
      there == nullptr ? ""
                       : fmt::format(", and rank {} is {}", facts.rank, there->DescribeHost())));
}

void Rendezvous::OnFacts(const std::shared_ptr<RendezvousVisitor>& visitor) {
  const RankFacts& facts = visitor->facts();
  door_->Proved(visitor->Address());
  if (!failed_.ok()) return visitor->SayLast(RefusalMessage(failed_));
  if (const Status status = CheckNewcomer(facts); !status.ok()) {
    OnTurnedAway(visitor.get(), status);
    return visitor->SayLast(RefusalMessage(status));
  }
  const RankFacts* const there = roster_.Find(facts.rank);
  if (there != nullptr && there->instance != facts.instance && !visitor->asked_again()) {
    // A duplicate; or a rank that has been started again, and the end of its earlier connection
    // has not come through yet.
    return visitor->AskAgainIn(kDuplicatePatience);
  }
  if (const Status status = roster_.Add(facts); !status.ok()) {
    Fail(status);
    return visitor->SayLast(RefusalMessage(status));
  }
  if (waiting_[facts.rank] != nullptr) waiting_[facts.rank]->Cancel();  // its earlier connection
  waiting_[facts.rank] = visitor;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
  RendezvousMessage welcome;
  welcome.mutable_welcome()->set_remaining_ms(std::max<int64_t>(left.count(), 0));
  visitor->Say(welcome);
  if (roster_.Complete()) AskToListen();
}

// All ranks; or, if one has come again, those that it concerns.
void Rendezvous::AskToListen() {
  for (const auto& visitor : waiting_) {
    const std::string address = roster_.ListenAt(visitor->facts().rank);
    if (std::exchange(visitor->asked_to_listen_at, address) == address) continue;
    RendezvousMessage message;
    message.set_listen_at(address);
    visitor->Say(message);
  }
}

void Rendezvous::OnMessage(RendezvousVisitor* visitor, const RendezvousMessage& message) {
  const int rank = visitor->facts().rank;
  if (waiting_[rank].get() != visitor || formed_ || !failed_.ok()) return;
  if (message.has_refusal()) return Fail(StatusOfRefusal(message.refusal()));
  const bool asked = !visitor->asked_to_listen_at.empty();
  if (message.kind_case() != RendezvousMessage::kListeningAt || !asked) return visitor->Cancel();
  roster_.SetListening(rank, message.listening_at());
  if (roster_.AllListening()) TellWorld();
}

void Rendezvous::TellWorld() {
  formed_ = true;
  timer_.Cancel();
  const std::string table = EncodeWorldTable(roster_.Table(generation(), salt_));
  for (const auto& visitor : waiting_) {
    CutIntoPieces(table, [&](RendezvousPart part) {
      RendezvousMessage message;
      const bool last = part.last();
      *message.mutable_world() = std::move(part);
      last ? visitor->SayLast(message) : visitor->Say(message);
    });
  }
}

void Rendezvous::Fail(const Status& why) {
  if (!failed_.ok()) return;
  failed_ = why;
  timer_.Cancel();
  for (const auto& visitor : waiting_) {
    if (visitor != nullptr) visitor->SayLast(RefusalMessage(why));
  }
}

void Rendezvous::OnEnd(RendezvousVisitor* visitor) {
  if (!visitor->is_rank()) return;
  const RankFacts& facts = visitor->facts();
  const auto rank = static_cast<size_t>(facts.rank);
  if (!failed_.ok()) {
    MutexLock lock(&mutex_);
    if (rank < waiting_.size()) told_.insert(facts.rank);
    changed_.NotifyAll();
  }
  if (rank >= waiting_.size() || waiting_[rank].get() != visitor) return;
  if (!formed_) roster_.Remove(facts);
  waiting_[rank] = nullptr;
}

}  // namespace ringtail
