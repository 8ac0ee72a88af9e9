#include "dist/parameter_server/wire/worker_link.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr uint64_t kOwnReply = 0;  // a completion that says that the inbox has one
// Heartbeats name a server that hangs long before.
constexpr std::chrono::minutes kLeaveTimeout{10};

}  // namespace

WorkerLink::WorkerLink(Transport* transport, std::vector<Server> servers)
    : transport_(transport),
      servers_(std::move(servers)),
      next_(servers_.size()),
      next_wire_(servers_.size()),
      unanswered_(servers_.size()),
      away_(servers_.size()) {}

WorkerLink::~WorkerLink() { Finish(); }

void WorkerLink::Finish() {
  const Deadline deadline = std::chrono::steady_clock::now() + kLeaveTimeout;
  while (!operations_.empty()) {
    Completion completion;
    if (queue_.Next(&completion, deadline)) {
      static_cast<void>(Take(completion));  // begins to receive the parts of an answer
      continue;
    }
    transport_->Abort(Status(StatusCode::kDeadlineExceeded,
                             "what a worker has sent to its servers does not arrive"));
    queue_.Drain(operations_.size(),
                 [this](const Completion& ended) { return operations_.contains(ended.id); });
    return;
  }
}

std::function<void(ServerReply)> WorkerLink::own_replies(size_t server) {
  return [this, server](ServerReply reply) {
    MutexLock lock(&mutex_);
    inbox_.push_back({.server = server,
                      .number = reply.number,
                      .message = reply.message,
                      .weights = std::move(reply.weights),
                      .statistics = std::move(reply.statistics)});
    queue_.Put({kOwnReply, OkStatus()});
  };
}

uint64_t WorkerLink::Send(size_t server, ServerMessage message, SharedBuffer gradient,
                          SharedBuffer statistics) {
  const uint64_t number = next_[server]++;
  message.bytes = gradient != nullptr ? gradient->size_bytes() : 0;
  message.statistics = statistics != nullptr;
  const Question question{message, std::move(gradient), std::move(statistics)};
  const bool may_die = servers_[server].replica && servers_[server].rank != transport_->rank();
  if (may_die && IsAnswered(message.kind)) unanswered_[server][number] = question;
  if (message.kind == MessageKind::kAway) {  // pulls that wait are answered without weights
    std::erase_if(unanswered_[server], [](const auto& asked) {
      return asked.second.message.kind == MessageKind::kPull;
    });
  }
  away_[server] =
      message.kind == MessageKind::kAway || (away_[server] && message.kind != MessageKind::kPull);
  SendNow(server, number, question);
  return number;
}

void WorkerLink::SendNow(size_t server, uint64_t number, const Question& question) {
  const Server& to = servers_[server];
  if (to.rank == transport_->rank()) {
    own_.at(server)->Request({.worker = to.rank,
                              .number = number,
                              .message = question.message,
                              .gradient = question.gradient,
                              .statistics = question.statistics});
    return;
  }
  const uint64_t wire_number = next_wire_[server]++;
  if (IsAnswered(question.message.kind)) ReceiveHeader(server, number, wire_number);
  const auto outgoing =
      std::make_shared<OutgoingMessage>(OutgoingMessage{.header = EncodeMessage(question.message),
                                                        .bytes = question.gradient,
                                                        .statistics = question.statistics});
  std::vector<CompletionTarget> done;
  for (size_t part = 0; part < PartsOf(*outgoing); ++part) {
    done.push_back(Start({.server = server, .rank = to.rank, .sent = outgoing}));
  }
  SendParts(transport_, to.rank, to.requests, wire_number, *outgoing, done);
}

void WorkerLink::Leave() {
  leaving_ = true;
  const ServerMessage leave{.kind = MessageKind::kLeave};
  for (size_t i = 0; i < servers_.size(); ++i) {
    Send(i, leave);
    const auto& replica = servers_[i].replica;
    if (!replica) continue;
    if (own_replicas_.contains(i)) {
      own_replicas_.at(i)->Request({.worker = transport_->rank(), .message = leave});
      continue;
    }
    const auto outgoing =
        std::make_shared<OutgoingMessage>(OutgoingMessage{.header = EncodeMessage(leave)});
    const CompletionTarget done = Start({.server = i, .rank = replica->rank, .sent = outgoing});
    SendParts(transport_, replica->rank, replica->requests, 0, *outgoing, std::span(&done, 1));
  }
}

CompletionTarget WorkerLink::Start(Operation operation) {
  const uint64_t id = next_operation_++;
  operations_[id] = std::move(operation);
  return {.queue = &queue_, .id = id};
}

void WorkerLink::ReceiveHeader(size_t server, uint64_t number, uint64_t wire_number) {
  const auto awaited = std::make_shared<Awaited>(
      Awaited{.reply = {.server = server, .number = number}, .wire_number = wire_number});
  transport_->Receive(servers_[server].rank,
                      LabelOf(servers_[server].replies, wire_number, MessagePart::kHeader),
                      std::span<std::byte>(awaited->header),
                      Start({.server = server,
                             .rank = servers_[server].rank,
                             .awaited = awaited,
                             .is_header = true}));
}

// The server is dead. What it has not answered is asked again.
Status WorkerLink::OnFailure(const Operation& operation, const Status& cause) {
  const size_t server = operation.server;
  if (leaving_ || !servers_[server].replica || !transport_->EndCause().ok()) return cause;
  UseReplica(server);
  for (auto& [number, question] : unanswered_[server]) {
    if (question.message.kind == MessageKind::kPull) question.message.version = 0;  // without a key
    SendNow(server, number, question);
  }
  unanswered_[server].clear();
  // After its pushes: one of a worker that is not there would be refused.
  if (away_[server]) SendNow(server, next_[server]++, {.message = {.kind = MessageKind::kAway}});
  return OkStatus();
}

void WorkerLink::UseReplica(size_t server) {
  Server& to = servers_[server];
  to.rank = to.replica->rank;
  to.requests = to.replica->requests;
  to.replies = to.replica->replies;
  to.replica.reset();
  next_wire_[server] = 0;
  own_.erase(server);
  if (own_replicas_.contains(server)) own_[server] = own_replicas_.at(server);
}

StatusOr<std::optional<WorkerLink::Reply>> WorkerLink::Next(Deadline deadline) {
  while (status_.ok()) {
    Completion completion;
    if (!queue_.Next(&completion, deadline)) return std::optional<Reply>();
    auto reply = Take(completion);
    status_ = reply.status();
    if (status_.ok() && *reply) return reply;
  }
  return status_;
}

StatusOr<std::optional<WorkerLink::Reply>> WorkerLink::Take(const Completion& completion) {
  if (completion.id == kOwnReply) return TakeOwn();
  const auto at = operations_.find(completion.id);
  RT_CHECK(at != operations_.end(), "an operation that was started");
  const Operation operation = std::move(at->second);
  operations_.erase(at);
  // Of a server that was replaced: what it has answered, too, is asked again.
  if (operation.rank != servers_[operation.server].rank && !leaving_) return std::optional<Reply>();
  if (!completion.status.ok()) {
    RT_RETURN_IF_ERROR(OnFailure(operation, completion.status));
    return std::optional<Reply>();
  }
  if (operation.sent != nullptr) return std::optional<Reply>();
  if (operation.is_header) return OnHeader(operation.awaited);
  if (--operation.awaited->missing > 0) return std::optional<Reply>();
  return Answered(std::move(operation.awaited->reply));
}

std::optional<WorkerLink::Reply> WorkerLink::Answered(Reply reply) {
  unanswered_[reply.server].erase(reply.number);
  return reply;
}

StatusOr<std::optional<WorkerLink::Reply>> WorkerLink::OnHeader(
    const std::shared_ptr<Awaited>& awaited) {
  const Server& server = servers_[awaited->reply.server];
  const auto decoded = DecodeMessage(awaited->header);
  Status status = decoded.status();
  const bool weights = decoded.ok() && decoded->kind == MessageKind::kWeights;
  const bool state = decoded.ok() && decoded->kind == MessageKind::kState;
  const size_t bytes = weights ? server.weight_bytes : state ? server.state_bytes : 0;
  // (A decoder checks the length of coded weights.)
  const bool fits =
      decoded.ok() && (weights && server.coded ? decoded->bytes <= bytes : decoded->bytes == bytes);
  if (decoded.ok() && !fits) {
    status = DataLoss(fmt::format("the server on rank {} announces {} bytes, not {}", server.rank,
                                  decoded->bytes, bytes));
  }
  if (decoded.ok() && decoded->statistics && (!weights || server.statistics_bytes == 0)) {
    status = DataLoss(fmt::format("the server on rank {} announces statistics", server.rank));
  }
  if (!status.ok()) {
    transport_->Abort(status);
    return status;
  }
  Reply& reply = awaited->reply;
  reply.message = *decoded;
  awaited->missing = (decoded->bytes > 0 ? 1 : 0) + (decoded->statistics ? 1 : 0);
  if (awaited->missing == 0) return Answered(std::move(reply));
  if (decoded->bytes > 0) {
    reply.weights = ReceivePart(awaited, MessagePart::kBytes, decoded->bytes);
  }
  if (decoded->statistics) {
    reply.statistics = ReceivePart(awaited, MessagePart::kStatistics, server.statistics_bytes);
  }
  return std::optional<Reply>();
}

SharedBuffer WorkerLink::ReceivePart(const std::shared_ptr<Awaited>& awaited, MessagePart part,
                                     size_t bytes) {
  const Server& server = servers_[awaited->reply.server];
  SharedBuffer buffer = pool_.Take(bytes);
  transport_->Receive(
      server.rank, LabelOf(server.replies, awaited->wire_number, part), AllBytes(buffer),
      Start({.server = awaited->reply.server, .rank = server.rank, .awaited = awaited}));
  return buffer;
}

std::optional<WorkerLink::Reply> WorkerLink::TakeOwn() {
  MutexLock lock(&mutex_);
  Reply reply = std::move(inbox_.front());
  inbox_.pop_front();
  return reply;
}

}  // namespace ringtail
