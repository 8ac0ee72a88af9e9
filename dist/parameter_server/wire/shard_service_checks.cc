// What a worker may send, and when: every number of a request, before what it announces is received.
#include <fmt/format.h>

#include "dist/parameter_server/wire/shard_service.h"

namespace ringtail {
namespace {

constexpr size_t kMostWorkers = 4096;

Status Unexpected(int worker, const char* what) {
  return DataLoss(fmt::format("worker {} has sent {}", worker, what));
}

}  // namespace

Status ShardService::Check(int worker, const ServerMessage& message) const {
  if (!pushes_.contains(worker)) return Unexpected(worker, "a request, but has left");
  size_t bytes = 0;
  switch (message.kind) {
    case MessageKind::kPush:
      return CheckPush(worker, message);
    case MessageKind::kPull:
      if (!Computes(worker)) return Unexpected(worker, "a pull, but computes nothing");
      if (const auto at = waiting_.find(worker); at != waiting_.end() && !at->second.asked_again) {
        return Unexpected(worker, "a pull while one waits");
      }
      break;
    case MessageKind::kAsk:
    case MessageKind::kReturn:
      if (options_.desk == nullptr) {
        return Unexpected(worker, "a question about tickets, which are elsewhere");
      }
      break;
    case MessageKind::kSnapshot:
      bytes = message.bytes;
      if (bytes > 0 && bytes <= kMostWorkers * sizeof(int64_t) && bytes % sizeof(int64_t) == 0) {
        break;
      }
      return Unexpected(worker, "a request for a snapshot after no number of pushes");
    case MessageKind::kAway:
      if (!Computes(worker)) return Unexpected(worker, "that it is away, but computes nothing");
      break;
    case MessageKind::kLeave:
      break;
    default:
      return Unexpected(worker, "an answer in place of a request");
  }
  if (message.bytes == bytes && !message.statistics) return OkStatus();
  return Unexpected(worker, "more than the request has");
}

// Now, or after it was away.
bool ShardService::Computes(int worker) const {
  return options_.shard->clocks().Has(worker) || options_.shard->paused(worker);
}

Status ShardService::CheckPush(int worker, const ServerMessage& message) const {
  const bool passes = message.rows == 0;
  if (passes && (message.bytes > 0 || message.statistics)) {
    return Unexpected(worker, "a gradient of no images");
  }
  if (!passes &&
      (message.bytes != push_bytes() || message.statistics != (statistics_bytes() > 0))) {
    return Unexpected(worker, "a gradient of another size");
  }
  if (JudgementOf(worker, message.clock) != nullptr) return OkStatus();
  if (message.clock != pushes_.at(worker)) {
    return Unexpected(worker, "its pushes in another order");
  }
  if (passes) {
    const bool in_turn = options_.shard->rule().synchronous();
    if (in_turn && (options_.desk == nullptr || options_.desk->Passes(worker))) return OkStatus();
    return Unexpected(worker, "a gradient of no images");
  }
  const Ticket ticket{message.first, message.rows};
  if (options_.desk == nullptr || options_.desk->Holds(worker, ticket)) return OkStatus();
  return Unexpected(worker, "a gradient of images that it was not given");
}

}  // namespace ringtail
