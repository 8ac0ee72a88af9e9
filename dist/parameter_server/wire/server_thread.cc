#include "dist/parameter_server/wire/server_thread.h"

#include <fmt/format.h>

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
    for (const int rank : options_.workers) {
      if (rank == transport_->rank()) continue;
      workers_[rank].request.worker = rank;
      ReceiveHeader(rank);
    }
  }
  thread_ = std::thread([this] { Loop(); });
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
  const Status fits = service_->Check(request.worker, request.message);
  RT_CHECK(fits.ok(), fits.message());
  Send(service_->Handle(request));
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
  ended_ = ending_ && operations_.empty();
  if (ended_) ended_changed_.NotifyAll();
  return ended_;
}

CompletionTarget ServerThread::Start(Operation operation) {
  const uint64_t id = next_operation_++;
  operations_[id] = std::move(operation);
  return {.queue = &queue_, .id = id};
}

void ServerThread::ReceiveHeader(int rank) {
  Worker& worker = workers_[rank];
  transport_->Receive(rank, LabelOf(options_.requests, worker.next, MessagePart::kHeader),
                      std::span<std::byte>(worker.header),
                      Start({.worker = rank, .is_header = true}));
}

void ServerThread::Take(const Completion& completion) {
  MutexLock lock(&mutex_);
  const auto at = operations_.find(completion.id);
  RT_CHECK(at != operations_.end(), "an operation that was started");
  const Operation operation = std::move(at->second);
  operations_.erase(at);
  Worker& worker = workers_[operation.worker];
  if (!completion.status.ok()) return Lose(operation.worker, completion.status);
  if (operation.sent != nullptr || !worker.there) return;
  if (operation.is_header) return OnHeader(operation.worker);
  if (--worker.missing == 0) Serve(operation.worker);
}

void ServerThread::OnHeader(int rank) {
  Worker& worker = workers_[rank];
  const auto message = DecodeMessage(worker.header);
  Status status = message.status();
  if (status.ok()) status = service_->Check(rank, *message);
  if (!status.ok()) return transport_->GiveUp(rank, status);
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
                      AllBytes(buffer), Start({.worker = rank}));
  return buffer;
}

void ServerThread::Serve(int rank) {
  const ScopedSpan span("serve", "server");
  Worker& worker = workers_[rank];
  std::vector<ServerReply> replies = service_->Handle(worker.request);
  worker.request.gradient.reset();
  worker.request.statistics.reset();
  Send(std::move(replies));
  worker.there = worker.request.message.kind != MessageKind::kLeave;
  if (worker.there) ReceiveHeader(rank);
}

void ServerThread::Send(std::vector<ServerReply> replies) {
  for (ServerReply& reply : replies) {
    if (reply.worker == transport_->rank()) {
      options_.own(std::move(reply));
      continue;
    }
    if (!workers_[reply.worker].there) continue;
    const auto message = std::make_shared<OutgoingMessage>(
        OutgoingMessage{.header = EncodeMessage(reply.message),
                        .bytes = std::move(reply.weights),
                        .statistics = std::move(reply.statistics)});
    std::vector<CompletionTarget> done;
    for (size_t part = 0; part < PartsOf(*message); ++part) {
      done.push_back(Start({.worker = reply.worker, .sent = message}));
    }
    SendParts(transport_, reply.worker, options_.replies, reply.number, *message, done);
  }
}

void ServerThread::Lose(int rank, const Status& cause) {
  Worker& worker = workers_[rank];
  if (!std::exchange(worker.there, false)) return;
  Send(service_->Remove(rank));
  if (options_.lost) options_.lost(rank, cause);
}

}  // namespace ringtail
