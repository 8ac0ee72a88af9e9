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
    : transport_(transport), servers_(std::move(servers)), next_(servers_.size()) {}

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

std::function<void(ServerReply)> WorkerLink::own_replies() {
  return [this](ServerReply reply) {
    MutexLock lock(&mutex_);
    inbox_.push_back(std::move(reply));
    queue_.Put({kOwnReply, OkStatus()});
  };
}

uint64_t WorkerLink::Send(size_t server, ServerMessage message, SharedBuffer gradient,
                          SharedBuffer statistics) {
  const Server& to = servers_[server];
  const uint64_t number = next_[server]++;
  message.bytes = gradient != nullptr ? gradient->size_bytes() : 0;
  message.statistics = statistics != nullptr;
  if (to.rank == transport_->rank()) {
    own_.at(server)->Request({.worker = to.rank,
                              .number = number,
                              .message = message,
                              .gradient = std::move(gradient),
                              .statistics = std::move(statistics)});
    return number;
  }
  if (IsAnswered(message.kind)) ReceiveHeader(server, number);
  const auto outgoing =
      std::make_shared<OutgoingMessage>(OutgoingMessage{.header = EncodeMessage(message),
                                                        .bytes = std::move(gradient),
                                                        .statistics = std::move(statistics)});
  std::vector<CompletionTarget> done;
  for (size_t part = 0; part < PartsOf(*outgoing); ++part) {
    done.push_back(Start({.sent = outgoing}));
  }
  SendParts(transport_, to.rank, to.requests, number, *outgoing, done);
  return number;
}

CompletionTarget WorkerLink::Start(Operation operation) {
  const uint64_t id = next_operation_++;
  operations_[id] = std::move(operation);
  return {.queue = &queue_, .id = id};
}

void WorkerLink::ReceiveHeader(size_t server, uint64_t number) {
  const auto awaited =
      std::make_shared<Awaited>(Awaited{.reply = {.server = server, .number = number}});
  transport_->Receive(
      servers_[server].rank, LabelOf(servers_[server].replies, number, MessagePart::kHeader),
      std::span<std::byte>(awaited->header), Start({.awaited = awaited, .is_header = true}));
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
  RT_RETURN_IF_ERROR(Status(completion.status));
  if (operation.sent != nullptr) return std::optional<Reply>();
  if (operation.is_header) return OnHeader(operation.awaited);
  if (--operation.awaited->missing > 0) return std::optional<Reply>();
  return std::optional<Reply>(std::move(operation.awaited->reply));
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
  if (awaited->missing == 0) return std::optional<Reply>(std::move(reply));
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
  transport_->Receive(server.rank, LabelOf(server.replies, awaited->reply.number, part),
                      AllBytes(buffer), Start({.awaited = awaited}));
  return buffer;
}

std::optional<WorkerLink::Reply> WorkerLink::TakeOwn() {
  MutexLock lock(&mutex_);
  ServerReply reply = std::move(inbox_.front());
  inbox_.pop_front();
  size_t server = 0;
  while (servers_[server].rank != transport_->rank()) ++server;
  return Reply{.server = server,
               .number = reply.number,
               .message = reply.message,
               .weights = std::move(reply.weights),
               .statistics = std::move(reply.statistics)};
}

}  // namespace ringtail
