#include "apps/trainer/asynchronous/worker_round.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "core/stopwatch.h"
#include "core/trace.h"

namespace ringtail {
namespace {

constexpr int kTicketsAhead = 2;
// A worker without a ticket holds those that may only be so far ahead of it for no longer.
constexpr std::chrono::milliseconds kPatience{10};
constexpr std::chrono::seconds kWatch{1};
constexpr uint64_t kNoPull = std::numeric_limits<uint64_t>::max();

}  // namespace

WorkerRound::WorkerRound(TrainingWorld* world, WorkerLink* link,
                         const std::vector<PlacedShard>* shards, ParameterArena* model,
                         const Options& options)
    : world_(world),
      link_(link),
      shards_(shards),
      model_(model),
      options_(options),
      pulled_(shards->size()),
      pull_numbers_(shards->size(), kNoPull),
      versions_(shards->size()) {
  if (options.pull == AsynchronousConfig::F32) return;
  for (const PlacedShard& shard : *shards) {
    decoders_.emplace_back(options.pull, shard.layout.elements());
  }
}

void WorkerRound::Ask(int signal) {
  asked_.insert(link_->next_number(0));  // before it is sent: the own server answers at once
  link_->Send(0, {.kind = MessageKind::kAsk, .reason = static_cast<uint8_t>(signal)});
}

void WorkerRound::Pull() {
  has_pulled_ = true;
  missing_ = shards_->size();
  for (size_t i = 0; i < shards_->size(); ++i) {
    const int64_t key = decoders_.empty() ? kNoKey : decoders_[i].key();
    pull_numbers_[i] = link_->next_number(i);  // before it is sent: the own server answers at once
    link_->Send(i, {.kind = MessageKind::kPull, .version = key + 1});
  }
}

StatusOr<StepWork> WorkerRound::Next(int signal) {
  if (!begun_) {
    begun_ = true;
    told_signal_ = signal != 0;
    for (int i = 0; i < (options_.computes ? kTicketsAhead : 1); ++i) Ask(signal);
  }
  if (!options_.computes) return Watch(signal);
  RT_RETURN_IF_ERROR(WaitForWork());
  while (!tickets_.empty() && tickets_.front().rows == 0) {  // there are images for others only
    SendPush({.kind = MessageKind::kPush}, signal);
    RT_RETURN_IF_ERROR(WaitForWork());
  }
  if (tickets_.empty()) return StepWork{.kind = StepWork::Kind::kNothing};
  if (options_.overlap) Pull();
  StepWork work{.kind = StepWork::Kind::kTicket, .ticket = tickets_.front()};
  if (tickets_.size() > 1 && tickets_[1].rows > 0) work.next = tickets_[1];
  return work;
}

// Until there is a ticket, and the weights for it are the model's, or the round is over.
Status WorkerRound::WaitForWork() {
  const auto has_work = [this] { return !tickets_.empty() || IsOver(); };
  if (options_.bounded) {
    RT_ASSIGN_OR_RETURN(const bool soon, Wait(has_work, kPatience));
    if (!soon) GoAway();
  }
  RT_RETURN_IF_ERROR(WaitUntil(has_work));
  if (!tickets_.empty() && !has_pulled_) Pull();
  RT_RETURN_IF_ERROR(
      WaitUntil([this] { return tickets_.empty() ? IsOver() : Pulled() && under_way_ <= 1; }));
  return tickets_.empty() ? OkStatus() : Install();
}

StatusOr<StepWork> WorkerRound::Watch(int signal) {
  if (signal != 0 && !std::exchange(told_signal_, true)) Ask(signal);
  RT_RETURN_IF_ERROR(Wait([this] { return IsOver(); }, kWatch).status());
  return StepWork{.kind = StepWork::Kind::kNothing};
}

bool WorkerRound::IsOver() const {
  return over_ && asked_.empty() && tickets_.empty() && under_way_ == 0;
}

// The weights that were pulled become the model's.
Status WorkerRound::Install() {
  for (size_t i = 0; i < shards_->size(); ++i) {
    WorkerLink::Reply& reply = pulled_[i];
    const ShardLayout& layout = (*shards_)[i].layout;
    if (!decoders_.empty()) {
      SharedBuffer weights = pool_.Take(static_cast<size_t>(layout.elements()) * sizeof(float));
      RT_RETURN_IF_ERROR(decoders_[i].Decode(AllBytes(reply.weights), weights->floats()));
      reply.weights = std::move(weights);
    }
    layout.Scatter(reply.weights->floats(), model_->values());
    versions_[i] = reply.message.version;
    if (reply.statistics != nullptr) {
      std::ranges::copy(reply.statistics->floats(), model_->buffer_values().begin());
    }
    reply = {};
  }
  has_pulled_ = false;
  return OkStatus();
}

// The gradient as it travels. One that is not finite stays out of what is sent later.
SharedBuffer WorkerRound::Code(const PlacedShard& shard, bool finite) {
  if (shard.coding == nullptr) {
    const auto bytes = static_cast<size_t>(shard.layout.elements()) * sizeof(float);
    SharedBuffer gradient = pool_.Take(bytes);
    shard.layout.Gather(model_->grads(), gradient->floats());
    return gradient;
  }
  SharedBuffer payload = pool_.Take(shard.coding->bytes());
  std::ranges::fill(AllBytes(payload), std::byte{0});
  if (finite) {
    shard.coding->Encode(world_->rank(), pushes_, model_->grads(), *options_.memories,
                         AllBytes(payload));
  }
  return payload;
}

Status WorkerRound::Push(const OwnStep& own, bool finite, double norm, int signal) {
  const ScopedSpan span("push", "server");
  SendPush({.kind = MessageKind::kPush,
            .finite = finite,
            .correct = static_cast<int32_t>(own.loss.correct),
            .loss_sum = own.loss.loss_sum,
            .norm = norm},
           signal);
  return OkStatus();
}

// Of the first ticket; one of no rows without a gradient.
void WorkerRound::SendPush(ServerMessage message, int signal) {
  const auto pushed =
      std::make_shared<Pushed>(Pushed{.ticket = tickets_.front(), .unanswered = shards_->size()});
  tickets_.pop_front();
  if (!over_) Ask(signal);
  ++under_way_;
  message.clock = pushes_;
  message.first = pushed->ticket.first;
  message.rows = static_cast<int32_t>(pushed->ticket.rows);
  const bool computed = message.rows > 0;
  for (size_t i = 0; i < shards_->size(); ++i) {
    SharedBuffer gradient = computed ? Code((*shards_)[i], message.finite) : nullptr;
    SharedBuffer statistics;
    if (computed && i == 0 && !model_->buffer_values().empty()) {
      statistics = pool_.Take(model_->buffer_values().size_bytes());
      std::ranges::copy(model_->buffer_values(), statistics->floats().begin());
    }
    message.version = versions_[i];
    // Before it is sent: this rank's own server answers at once.
    judging_[{i, link_->next_number(i)}] = pushed;
    link_->Send(i, message, std::move(gradient), std::move(statistics));
  }
  ++pushes_;
  if (!options_.overlap) Pull();
}

void WorkerRound::OnReply(WorkerLink::Reply reply) {
  const ServerMessage& message = reply.message;
  if (reply.server == 0 && message.version > 0) version_ = std::max(version_, message.version);
  switch (message.kind) {
    case MessageKind::kTicket:
      asked_.erase(reply.number);
      tickets_.push_back({message.first, message.rows});
      return;
    case MessageKind::kRoundOver:
    case MessageKind::kEnd:
      // Else it answers a pull that is not needed, perhaps an earlier one than the last.
      if (reply.server != 0 || asked_.erase(reply.number) == 0) return;
      over_ = true;
      end_ = message;
      return;
    case MessageKind::kState:
      states_[reply.server] = std::move(reply.weights);
      --states_missing_;
      return;
    case MessageKind::kJudged:
      return OnJudged(reply);
    default:
      if (!has_pulled_ || reply.number != pull_numbers_[reply.server]) return;
      if (reply.server == 0) images_ = std::max(images_, message.first);
      --missing_;
      pulled_[reply.server] = std::move(reply);
  }
}

void WorkerRound::OnJudged(const WorkerLink::Reply& reply) {
  const auto at = judging_.find({reply.server, reply.number});
  RT_CHECK(at != judging_.end(), "a push that was sent");
  const std::shared_ptr<Pushed> pushed = at->second;
  judging_.erase(at);
  if (!reply.message.applied) {
    ++pushed->refused;
    pushed->refused_by_first = pushed->refused_by_first || reply.server == 0;
  }
  if (--pushed->unanswered > 0) return;
  --under_way_;
  if (!pushed->refused_by_first) return;
  // Its images come again if no server has taken them.
  link_->Send(0, {.kind = MessageKind::kReturn,
                  .finite = pushed->refused < shards_->size(),
                  .first = pushed->ticket.first,
                  .rows = static_cast<int32_t>(pushed->ticket.rows)});
}

// As long as it takes: worker 0 may evaluate for an hour. Heartbeats name a rank that hangs.
Status WorkerRound::WaitUntil(const std::function<bool()>& reached) {
  for (bool done = false; !done;) {
    RT_ASSIGN_OR_RETURN(done, Wait(reached, kWatch));
  }
  return OkStatus();
}

// False if it is not reached within `limit`.
StatusOr<bool> WorkerRound::Wait(const std::function<bool()>& reached,
                                 std::chrono::milliseconds limit) {
  const Stopwatch watch;
  const ScopedSpan span("wait for servers", "server");
  const ScopedPhase blocked(world_->progress(), Phase::kBlocked);
  auto result = TakeReplies(reached, limit);
  blocked_seconds_ += watch.Seconds();
  if (result.ok()) return result;
  // Without its servers a worker cannot continue, nor can the run.
  if (world_->transport()->EndCause().ok()) world_->Abort(result.status());
  return world_->OnFailure(0, result.status());
}

// Takes what is there in any case; the limit is for the time from one reply to the next.
StatusOr<bool> WorkerRound::TakeReplies(const std::function<bool()>& reached,
                                        std::chrono::milliseconds limit) {
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    const bool done = reached();
    RT_ASSIGN_OR_RETURN(auto reply, link_->Next(done ? now : now + limit));
    if (!reply) return done;
    OnReply(*std::move(reply));
  }
}

void WorkerRound::Restart() {
  begun_ = over_ = told_signal_ = false;
  if (Pulled()) has_pulled_ = false;
}

StatusOr<std::vector<SharedBuffer>> WorkerRound::TakeSnapshot(std::span<const int64_t> pushes) {
  states_.assign(shards_->size(), nullptr);
  states_missing_ = shards_->size();
  for (size_t i = 0; i < shards_->size(); ++i) {
    SharedBuffer counts = pool_.Take(pushes.size_bytes());
    std::memcpy(counts->data(), pushes.data(), pushes.size_bytes());
    link_->Send(i, {.kind = MessageKind::kSnapshot}, std::move(counts));
  }
  RT_RETURN_IF_ERROR(WaitUntil([this] { return states_missing_ == 0; }));
  return std::exchange(states_, {});
}

// What it has pulled, or waits for, is not needed.
void WorkerRound::GoAway() {
  has_pulled_ = false;
  for (size_t i = 0; i < shards_->size(); ++i) link_->Send(i, {.kind = MessageKind::kAway});
}

void WorkerRound::Leave() { link_->Leave(); }

}  // namespace ringtail
