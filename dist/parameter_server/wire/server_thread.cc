#include "dist/parameter_server/wire/server_thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/machine/thread_budget.h"
#include "core/parallel_for.h"
#include "core/trace.h"

namespace ringtail {
namespace {

constexpr std::chrono::seconds kLook{1};
constexpr uint64_t kWake = 0;  // a completion that only wakes the thread

}  // namespace

ServerThread::ServerThread(Transport* transport, ShardService* service, Options options)
    : transport_(transport), options_(std::move(options)), service_(service) {
  {
    MutexLock lock(&mutex_);
    ConnectReplica();
    for (const int rank : options_.workers) {
      if (rank == transport_->rank()) continue;
      workers_[rank].request.worker = rank;
      ReceiveHeader(rank);
    }
  }
  thread_ = std::thread([this] { Loop(); });
}

void ServerThread::ConnectReplica() {
  const StartOperation start = [this](Done done)
                                   RT_REQUIRES(mutex_) { return Start(std::move(done)); };
  if (options_.feed) {
    feed_.emplace(transport_, ReplicaFeed::Options{
                                  .replica = *options_.feed,
                                  .start = start,
                                  .send = [this](std::vector<ServerReply> replies)
                                              RT_REQUIRES(mutex_) { Send(std::move(replies)); },
                                  .lost =
                                      [this](const Status& cause) {
                                        if (options_.replica_lost) options_.replica_lost(cause);
                                      }});
  }
  if (!options_.follows) return;
  follower_.emplace(transport_, service_,
                    ReplicaFollower::Options{.server = *options_.follows,
                                             .start = start,
                                             .on_dead = [this](const Status& cause) RT_REQUIRES(
                                                            mutex_) { TakeOver(cause); }});
  follower_->Start();
}

ServerThread::~ServerThread() {
  const auto deadline = std::chrono::steady_clock::now() + options_.leave_timeout;
  bool in_time = true;
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    queue_.Put({kWake, OkStatus()});
    while (!ended_ && in_time) in_time = ended_changed_.WaitUntil(&mutex_, deadline) || ended_;
  }
  if (!in_time) {
    transport_->Abort(Status(StatusCode::kDeadlineExceeded,
                             fmt::format("the workers of a server have not left within {} s",
                                         options_.leave_timeout / std::chrono::seconds(1))));
  }
  thread_.join();
}

void ServerThread::Request(const ServerRequest& request) {
  MutexLock lock(&mutex_);
  if (IsReplica()) {
    if (request.message.kind == MessageKind::kLeave) return gone_.push_back(request.worker);
    own_requests_.push_back(request);
    return GiveUpServer(request.worker);
  }
  const Status fits = service_->Check(request.worker, request.message);
  RT_CHECK(fits.ok() || took_over_, fits.message());
  if (!fits.ok()) return Refuse(request.worker, fits);
  Handle(request);
}

void ServerThread::Run(const Call& call) {
  MutexLock lock(&mutex_);
  Send(call(service_));
}

void ServerThread::Loop() {
  SetThreadName("rt-ps");
  UnbindThread();  // runs beside the compute threads, not on the core of one
  SetNumComputeThreads(options_.compute_threads);
  while (!Ended()) {
    Completion completion;
    if (!queue_.Next(&completion, std::chrono::steady_clock::now() + kLook)) continue;
    if (completion.id != kWake) Take(completion);
  }
}

// All workers have left, and no memory is in use.
bool ServerThread::Ended() {
  MutexLock lock(&mutex_);
  const bool alone = std::ranges::none_of(workers_, [](const auto& w) { return w.second.there; });
  if (ending_ && alone && feed_ && !std::exchange(feed_ended_, true)) feed_->End();
  ended_ = ending_ && operations_.empty();
  if (ended_) ended_changed_.NotifyAll();
  return ended_;
}

CompletionTarget ServerThread::Start(Done done) {
  const uint64_t id = next_operation_++;
  operations_[id] = std::move(done);
  return {.queue = &queue_, .id = id};
}

void ServerThread::Take(const Completion& completion) {
  MutexLock lock(&mutex_);
  const auto at = operations_.find(completion.id);
  RT_CHECK(at != operations_.end(), "an operation that was started");
  const Done done = std::move(at->second);
  operations_.erase(at);
  done(completion.status);
}

void ServerThread::ReceiveHeader(int rank) {
  Worker& worker = workers_[rank];
  transport_->Receive(rank, LabelOf(options_.requests, worker.next, MessagePart::kHeader),
                      std::span<std::byte>(worker.header),
                      Start([this, rank](const Status& status) RT_REQUIRES(mutex_) {
                        if (!status.ok()) return Lose(rank, status);
                        if (workers_[rank].there) OnHeader(rank);
                      }));
}

void ServerThread::OnHeader(int rank) {
  Worker& worker = workers_[rank];
  const auto message = DecodeMessage(worker.header);
  Status status = message.status();
  if (status.ok() && IsReplica()) return OnQuestion(rank, message->kind);
  if (status.ok() && !service_->Has(rank)) return OnRemoved(rank, message->kind);
  if (status.ok()) status = service_->Check(rank, *message);
  if (!status.ok()) return Refuse(rank, status);
  worker.request.number = worker.next++;
  worker.request.message = *message;
  worker.missing = (message->bytes > 0 ? 1 : 0) + (message->statistics ? 1 : 0);
  if (worker.missing == 0) return Serve(rank);
  if (message->bytes > 0) {
    worker.request.gradient = ReceivePart(rank, MessagePart::kBytes, message->bytes);
  }
  if (message->statistics) {
    worker.request.statistics =
        ReceivePart(rank, MessagePart::kStatistics, service_->statistics_bytes());
  }
}

SharedBuffer ServerThread::ReceivePart(int rank, MessagePart part, size_t bytes) {
  SharedBuffer buffer = pool_.Take(bytes);
  transport_->Receive(rank, LabelOf(options_.requests, workers_[rank].request.number, part),
                      AllBytes(buffer),
                      Start([this, rank](const Status& status) RT_REQUIRES(mutex_) {
                        if (!status.ok()) return Lose(rank, status);
                        Worker& worker = workers_[rank];
                        if (worker.there && --worker.missing == 0) Serve(rank);
                      }));
  return buffer;
}

void ServerThread::Serve(int rank) {
  const ScopedSpan span("serve", "server");
  Worker& worker = workers_[rank];
  Handle(worker.request);
  worker.request.gradient.reset();
  worker.request.statistics.reset();
  worker.there = worker.request.message.kind != MessageKind::kLeave;
  if (worker.there) ReceiveHeader(rank);
}

void ServerThread::Handle(const ServerRequest& request) {
  std::vector<ServerReply> replies = service_->Handle(request);
  if (feed_) {
    feed_->Forward(request, std::move(replies));
  } else {
    Send(std::move(replies));
  }
}

void ServerThread::Send(std::vector<ServerReply> replies) {
  for (ServerReply& reply : replies) {
    if (reply.worker == transport_->rank()) {
      options_.own(std::move(reply));
      continue;
    }
    const int rank = reply.worker;
    if (workers_[rank].lost) continue;
    const auto message = std::make_shared<OutgoingMessage>(
        OutgoingMessage{.header = EncodeMessage(reply.message),
                        .bytes = std::move(reply.weights),
                        .statistics = std::move(reply.statistics)});
    const auto sent = [this, rank, message](const Status& status) RT_REQUIRES(mutex_) {
      if (!status.ok()) Lose(rank, status);
    };
    std::vector<CompletionTarget> done;
    for (size_t part = 0; part < PartsOf(*message); ++part) done.push_back(Start(sent));
    SendParts(transport_, rank, options_.replies, reply.number, *message, done);
  }
}

void ServerThread::Lose(int rank, const Status& cause) {
  Worker& worker = workers_[rank];
  worker.lost = true;
  if (!std::exchange(worker.there, false)) return;
  // This rank's part has ended: the replica is not to take it for its worker's.
  if (!transport_->EndCause().ok()) return;
  if (IsReplica()) {
    gone_.push_back(rank);
  } else {
    Handle({.worker = rank, .message = {.kind = MessageKind::kLost}});
  }
  if (options_.lost) options_.lost(rank, cause);
}

// A copy that is too old, because the way from its server was cut before, is the replica's fault.
void ServerThread::Refuse(int rank, const Status& cause) {
  if (!took_over_) return transport_->GiveUp(rank, cause);
  transport_->Abort(DataLoss(fmt::format(
      "this rank's copy of a dead server's weights lacks updates that worker {} has heard of ({}); "
      "resume from the last checkpoint",
      rank, cause.message())));
}

// A worker asks the replica in place of its server. (That it leaves it says to both.)
void ServerThread::OnQuestion(int rank, MessageKind kind) {
  if (kind == MessageKind::kLeave) {
    workers_[rank].there = false;
    return gone_.push_back(rank);
  }
  if (!service_->Has(rank)) return OnRemoved(rank, kind);
  asking_.push_back(rank);
  GiveUpServer(rank);
}

// The server, of which this is or was the replica, has lost this worker.
void ServerThread::OnRemoved(int rank, MessageKind kind) {
  if (kind == MessageKind::kLeave) {
    workers_[rank].there = false;
    return;
  }
  transport_->GiveUp(
      rank, Status(StatusCode::kUnavailable, "the server of a replica has lost this worker"));
}

void ServerThread::GiveUpServer(int worker) {
  follower_->GiveUp(
      Status(StatusCode::kUnavailable, fmt::format("worker {} has lost its server there", worker)));
}

// The server is dead. What it had acknowledged is here.
void ServerThread::TakeOver(const Status& cause) {
  if (!transport_->EndCause().ok()) return;
  if (options_.took_over) options_.took_over(cause);
  took_over_ = true;
  service_->TakeOver();
  for (const int rank : std::exchange(gone_, {})) Send(service_->Remove(rank));
  for (const int rank : std::exchange(asking_, {})) OnHeader(rank);
  for (const ServerRequest& request : std::exchange(own_requests_, {})) {
    const Status fits = service_->Check(request.worker, request.message);
    if (!fits.ok()) return Refuse(request.worker, fits);
    Send(service_->Handle(request));
  }
}

}  // namespace ringtail
