#include "dist/parameter_server/wire/shard_service.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "dist/parameter_server/wire/message_parts.h"

namespace ringtail {
namespace {

// A worker has at most two pushes without an answer.
constexpr size_t kJudgementsKept = 4;

}  // namespace

ShardService::ShardService(const Options& options) : options_(options) {
  for (const std::span<const float> block : options_.state) state_bytes_ += block.size_bytes();
  KeepStatistics();
}

size_t ShardService::statistics_bytes() const {
  return options_.statistics != nullptr ? options_.statistics->mean().size_bytes() : 0;
}

void ShardService::Join(int worker, int64_t rows_of_a_ticket) {
  if (rows_of_a_ticket > 0) options_.shard->Join(worker);
  if (options_.desk != nullptr) options_.desk->Join(worker, rows_of_a_ticket);
  pushes_[worker] = 0;
}

// Of a push that it has had already; null: it has not, or too long ago.
const ShardService::Judgement* ShardService::JudgementOf(int worker, int64_t clock) const {
  const auto kept = judged_.find(worker);
  if (kept == judged_.end()) return nullptr;
  const auto at = std::ranges::find(kept->second, clock, &Judgement::clock);
  return at != kept->second.end() ? &*at : nullptr;
}

std::vector<ServerReply> ShardService::Handle(const ServerRequest& request) {
  const ServerMessage& message = request.message;
  const Ticket ticket{message.first, message.rows};
  std::vector<ServerReply> replies;
  switch (message.kind) {
    case MessageKind::kPull:
      Pull(request.worker, {.number = request.number, .key = message.version - 1}, &replies);
      break;
    case MessageKind::kPush:
      Push(request, &replies);
      break;
    case MessageKind::kAsk:
      options_.desk->Ask(request.worker, request.number, message.reason);
      break;
    case MessageKind::kReturn:
      if (message.finite) {
        options_.desk->Use(request.worker, ticket);
      } else {
        options_.desk->GiveBack(request.worker, ticket);
      }
      break;
    case MessageKind::kSnapshot: {
      const std::span<const float> numbers = request.gradient->floats();
      Snapshot snapshot{.worker = request.worker, .number = request.number};
      snapshot.pushes.resize(numbers.size_bytes() / sizeof(int64_t));
      std::memcpy(snapshot.pushes.data(), numbers.data(), numbers.size_bytes());
      snapshots_.push_back(std::move(snapshot));
      break;
    }
    case MessageKind::kLost:
      return Remove(request.worker);
    case MessageKind::kAway:
      CancelPull(request.worker, &replies);
      options_.shard->Pause(request.worker);
      break;
    default:
      return Leave(request.worker);
  }
  Follow(&replies);
  return replies;
}

// What the others need no longer wait for.
void ShardService::Follow(std::vector<ServerReply>* replies) {
  KeepStatistics();
  Release(replies);
  Answer(replies);
  TakeSnapshots(replies);
}

void ShardService::Push(const ServerRequest& request, std::vector<ServerReply>* replies) {
  const ServerMessage& message = request.message;
  if (const Judgement* before = JudgementOf(request.worker, message.clock)) {
    replies->push_back(
        {.worker = request.worker, .number = request.number, .message = before->message});
    return;
  }
  ++pushes_[request.worker];
  const PushResult result = message.rows == 0 ? Pass(request) : Apply(request);
  replies->push_back({.worker = request.worker,
                      .number = request.number,
                      .message = {.kind = MessageKind::kJudged,
                                  .applied = result.outcome != PushOutcome::kRefused,
                                  .reason = static_cast<uint8_t>(result.reason),
                                  .clock = result.staleness,
                                  .version = result.version,
                                  .first = options_.shard->images()}});
  std::deque<Judgement>& kept = judged_[request.worker];
  kept.push_back({.clock = message.clock, .message = replies->back().message});
  if (kept.size() > kJudgementsKept) kept.pop_front();
}

PushResult ShardService::Apply(const ServerRequest& request) {
  const ServerMessage& message = request.message;
  // (Of a network without batch norm none travel.)
  if (statistics_bytes() > 0 && message.finite) {
    options_.statistics->Put(request.worker, request.statistics->floats());
  }
  bool whole = true;
  const std::span<const float> gradient = GradientOf(request, &whole);
  const PushResult result = options_.shard->Push({.worker = request.worker,
                                                  .base_version = message.version,
                                                  .images = message.rows,
                                                  .gradient = gradient,
                                                  .finite = message.finite && whole,
                                                  .norm = message.norm});
  const bool taken = result.outcome != PushOutcome::kRefused;
  if (taken && options_.desk != nullptr) {
    options_.desk->Use(request.worker, {message.first, message.rows});
  }
  Count(message, result);
  return result;
}

PushResult ShardService::Pass(const ServerRequest& request) {
  if (options_.desk != nullptr) options_.desk->Pass(request.worker);
  return options_.shard->Pass(request.worker, request.message.version);
}

// What its bytes say; `whole`: whether they are a gradient.
std::span<const float> ShardService::GradientOf(const ServerRequest& request, bool* whole) {
  if (options_.coding == nullptr) return request.gradient->floats();
  if (decoded_ == nullptr) {
    decoded_ = pool_.Take(weight_bytes());
    std::ranges::fill(decoded_->floats(), 0.0F);  // the gaps
  }
  *whole = options_.coding
               ->Decode(request.worker, request.message.clock, AllBytes(request.gradient),
                        decoded_->floats())
               .ok();
  return decoded_->floats();
}

void ShardService::Pull(int worker, const WaitingPull& pull, std::vector<ServerReply>* replies) {
  if (options_.shard->paused(worker)) options_.shard->Join(worker);
  SharedBuffer weights = pool_.Take(weight_bytes());
  const auto pulled = options_.shard->Pull(worker, weights->floats());
  if (!pulled) {
    waiting_[worker] = pull;
    return;
  }
  waiting_.erase(worker);
  if (options_.pulls != nullptr) weights = Coded(weights, pulled->version, pull.key);
  ServerReply reply{.worker = worker,
                    .number = pull.number,
                    .message = {.kind = MessageKind::kWeights,
                                .clock = pushes_[worker],
                                .version = pulled->version,
                                .first = pulled->images,
                                .bytes = weights->size_bytes()},
                    .weights = weights};
  if (options_.shares_statistics && statistics_bytes() > 0) {
    reply.message.statistics = true;
    reply.statistics = pool_.Take(statistics_bytes());
    std::ranges::copy(statistics_, reply.statistics->floats().begin());
  }
  replies->push_back(std::move(reply));
}

SharedBuffer ShardService::Coded(const SharedBuffer& weights, int64_t version, int64_t key) {
  const std::span<const std::byte> payload =
      options_.pulls->Encode(weights->floats(), version, key);
  SharedBuffer coded = pool_.Take(payload.size());
  std::memcpy(coded->data(), payload.data(), payload.size());
  return coded;
}

// Pulls that need to wait no longer.
void ShardService::Release(std::vector<ServerReply>* replies) {
  for (const int worker : options_.shard->TakeReleased()) {
    const auto at = waiting_.find(worker);
    RT_CHECK(at != waiting_.end(), "who waits has asked");
    const WaitingPull pull = at->second;
    if (pull.asked_again) {
      waiting_.erase(at);
    } else {
      Pull(worker, pull, replies);
    }
  }
}

void ShardService::TakeOver() {
  for (auto& [worker, pull] : waiting_) pull.asked_again = true;
  snapshots_.clear();
}

void ShardService::Answer(std::vector<ServerReply>* replies) {
  if (options_.desk == nullptr) return;
  for (const TicketDesk::Answer& answer : options_.desk->TakeAnswers()) {
    ServerMessage message{.kind = MessageKind::kRoundOver};
    if (answer.closed) message = last_;
    if (answer.ticket) {
      message = {.kind = MessageKind::kTicket,
                 .first = answer.ticket->first,
                 .rows = static_cast<int32_t>(answer.ticket->rows)};
    } else {
      message.reason = static_cast<uint8_t>(answer.signal);
      message.rows = answer.stopped_by;
    }
    replies->push_back({.worker = answer.worker, .number = answer.number, .message = message});
  }
}

// A pull that waits is answered without weights: its worker receives every answer (kLeave, too).
void ShardService::CancelPull(int worker, std::vector<ServerReply>* replies) {
  const auto at = waiting_.find(worker);
  if (at == waiting_.end()) return;
  if (!at->second.asked_again) {
    replies->push_back(
        {.worker = worker, .number = at->second.number, .message = {.kind = MessageKind::kEnd}});
  }
  waiting_.erase(at);
}

std::vector<ServerReply> ShardService::Leave(int worker) {
  std::vector<ServerReply> replies;
  CancelPull(worker, &replies);
  const auto end = [&](uint64_t number) {
    replies.push_back({.worker = worker, .number = number, .message = {.kind = MessageKind::kEnd}});
  };
  if (options_.desk != nullptr) std::ranges::for_each(options_.desk->Withdraw(worker), end);
  for (const Snapshot& asked : snapshots_) {
    if (asked.worker == worker) end(asked.number);
  }
  for (ServerReply& reply : Remove(worker)) replies.push_back(std::move(reply));
  return replies;
}

std::vector<ServerReply> ShardService::Remove(int worker) {
  options_.shard->Remove(worker);
  if (options_.desk != nullptr) options_.desk->Remove(worker);
  if (options_.statistics != nullptr) options_.statistics->Remove(worker);
  pushes_.erase(worker);
  judged_.erase(worker);
  waiting_.erase(worker);
  std::erase_if(snapshots_, [&](const Snapshot& asked) { return asked.worker == worker; });
  std::vector<ServerReply> replies;
  Follow(&replies);
  return replies;
}

std::vector<ServerReply> ShardService::Open(int64_t end) {
  RT_CHECK(options_.desk != nullptr, "the first server has the tickets");
  options_.desk->Open(end);
  std::vector<ServerReply> replies;
  Answer(&replies);
  return replies;
}

std::vector<ServerReply> ShardService::Close(const ServerMessage& last) {
  RT_CHECK(options_.desk != nullptr, "the first server has the tickets");
  last_ = last;
  options_.desk->Close();
  std::vector<ServerReply> replies;
  Answer(&replies);
  return replies;
}

std::vector<int64_t> ShardService::Pushes(int workers) const {
  std::vector<int64_t> pushes(workers);
  for (const auto& [worker, count] : pushes_) pushes[worker] = count;
  return pushes;
}

// A worker that is not there has nothing under way any more.
bool ShardService::HasAll(const Snapshot& snapshot) const {
  return std::ranges::all_of(pushes_, [&](const auto& worker) {
    const auto place = static_cast<size_t>(worker.first);
    return place >= snapshot.pushes.size() || worker.second >= snapshot.pushes[place];
  });
}

// An incomplete group is applied before, with its own count.
void ShardService::TakeSnapshots(std::vector<ServerReply>* replies) {
  std::erase_if(snapshots_, [&](const Snapshot& asked) {
    if (!HasAll(asked)) return false;
    options_.shard->Finish();
    if (options_.before_snapshot) options_.before_snapshot();
    SharedBuffer state = pool_.Take(state_bytes_);
    auto out = state->floats().begin();
    for (const std::span<const float> block : options_.state) {
      out = std::ranges::copy(block, out).out;
    }
    replies->push_back({.worker = asked.worker,
                        .number = asked.number,
                        .message = {.kind = MessageKind::kState,
                                    .version = options_.shard->version(),
                                    .first = options_.shard->images(),
                                    .bytes = state_bytes_},
                        .weights = std::move(state)});
    return true;
  });
}

void ShardService::KeepStatistics() {
  if (options_.statistics == nullptr || statistics_version_ == options_.shard->version()) return;
  statistics_version_ = options_.shard->version();
  statistics_.assign(options_.statistics->mean().begin(), options_.statistics->mean().end());
}

void ShardService::Count(const ServerMessage& push, const PushResult& result) {
  if (result.outcome != PushOutcome::kRefused) {
    counts_.rows += push.rows;
    counts_.loss_sum += push.loss_sum;
    counts_.correct += push.correct;
    counts_.staleness.Add(result.staleness);
  } else if (result.reason == RefusalReason::kTooOld ||
             result.reason == RefusalReason::kVersionGone) {
    ++counts_.discarded;
  } else {
    ++counts_.refused;
  }
}

UpdateCounts ShardService::TakeCounts() {
  counts_.version = options_.shard->version();
  counts_.images = options_.shard->images();
  return std::exchange(counts_, {});
}

}  // namespace ringtail
