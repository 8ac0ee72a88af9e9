#include "dist/collectives/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/random.h"
#include "dist/collectives/element_history.h"

namespace ringtail {
namespace {

// The peers that a round sends to and receives from.
struct Exchange {
  std::set<int> sends_to;
  std::map<int, int> last_received;  // by peer: the operation that receives its last segment

  bool mutual() const {
    return std::ranges::any_of(sends_to, [this](int peer) { return last_received.contains(peer); });
  }
};

// All that passes between two ranks in one direction.
struct Conversation {
  uint32_t steps = 0;
  RngKey digest;
};

class Builder {
 public:
  Builder(int rank, const Collective& collective)
      : rank_(rank),
        collective_(collective),
        segment_elements_(std::max<int64_t>(
            1, collective.segment_bytes / static_cast<int64_t>(ElementBytes(collective.type)))),
        history_(collective.count) {}

  void AddRound(const Round& round, int number);
  std::vector<ScheduledOperation> Finish();

 private:
  using Key = std::pair<int, Direction>;  // peer and direction, seen from this rank

  Conversation& ConversationOf(const Step& step);
  std::vector<ScheduledOperation> Cut(const Step& step, int round);
  void AddReceives(std::vector<std::vector<ScheduledOperation>> steps, bool by_segment);
  void Add(ScheduledOperation operation);
  std::vector<int> WaitsOf(const ScheduledOperation& operation);

  const int rank_;
  const Collective& collective_;
  const int64_t segment_elements_;
  ElementHistory history_;
  std::map<Key, Conversation> conversations_;
  std::vector<ScheduledOperation> operations_;
  Exchange before_, now_;  // of the last round that sent something, and of this one
};

Direction DirectionOf(StepKind kind) {
  return kind == StepKind::kSend ? Direction::kSend : Direction::kReceive;
}

Conversation& Builder::ConversationOf(const Step& step) {
  const bool send = step.kind == StepKind::kSend;
  // The same number at both ends.
  const RngKey start = RngKey(0)
                           .With(collective_.name)
                           .With(ElementTypeName(collective_.type))
                           .With(static_cast<uint64_t>(collective_.count))
                           .With(static_cast<uint64_t>(segment_elements_))
                           .With(static_cast<uint64_t>(send ? rank_ : step.peer))
                           .With(static_cast<uint64_t>(send ? step.peer : rank_));
  const Key key{step.peer, DirectionOf(step.kind)};
  return conversations_.try_emplace(key, Conversation{.digest = start}).first->second;
}

// The operations of one step, all about as large.
std::vector<ScheduledOperation> Builder::Cut(const Step& step, int round) {
  const ElementRange& range = step.range;
  RT_CHECK(range.offset >= 0 && range.count > 0 && range.end() <= collective_.count,
           fmt::format("a step of {} elements at {}, with rank {}, lies outside the {} of {}",
                       range.count, range.offset, step.peer, collective_.count, collective_.name));
  Conversation& conversation = ConversationOf(step);
  const int64_t offset = collective_.in_place ? range.offset : 0;
  conversation.digest = conversation.digest.With(static_cast<uint64_t>(offset))
                            .With(static_cast<uint64_t>(range.count));
  const uint32_t number = conversation.steps++;
  const int64_t segments = (range.count + segment_elements_ - 1) / segment_elements_;
  std::vector<ScheduledOperation> operations;
  for (int64_t i = 0; i < segments; ++i) {
    const ElementRange part = EvenPart(range.count, segments, i);
    operations.push_back({.kind = step.kind,
                          .staged = step.kind == StepKind::kReceiveReduce,
                          .peer = step.peer,
                          .round = round,
                          .range = {.offset = range.offset + part.offset, .count = part.count},
                          .label = {.tag = {.step = number, .segment = static_cast<uint32_t>(i)}}});
  }
  return operations;
}

// True if ranges are the same or have nothing in common: then segments that share elements are the
// same segments.
bool SameOrDisjoint(const std::vector<ElementRange>& ranges) {
  for (const ElementRange& a : ranges) {
    for (const ElementRange& b : ranges) {
      if (!(a == b) && a.offset < b.end() && b.offset < a.end()) return false;
    }
  }
  return true;
}

void Builder::AddRound(const Round& round, int number) {
  std::vector<std::vector<ScheduledOperation>> receives;
  std::vector<ElementRange> ranges;
  for (const Step& step : round.steps) {
    if (step.range.count == 0) continue;
    RT_CHECK(step.peer != rank_,
             fmt::format("a step of rank {} in {} is with itself", rank_, collective_.name));
    std::vector<ScheduledOperation> operations = Cut(step, number);
    if (step.kind == StepKind::kSend) {
      for (ScheduledOperation& operation : operations) Add(std::move(operation));
    } else {
      receives.push_back(std::move(operations));
      ranges.push_back(step.range);
    }
  }
  AddReceives(std::move(receives), SameOrDisjoint(ranges));
  if (!now_.sends_to.empty()) before_ = std::move(now_);
  now_ = {};
}

// by_segment: the first segments of all steps before the second ones. So what comes from several
// peers comes at the same time, and what is added to the same elements finds them in the cache.
void Builder::AddReceives(std::vector<std::vector<ScheduledOperation>> steps, bool by_segment) {
  if (!by_segment) {
    for (auto& step : steps) {
      for (ScheduledOperation& operation : step) Add(std::move(operation));
    }
    return;
  }
  size_t longest = 0;
  for (const auto& step : steps) longest = std::max(longest, step.size());
  for (size_t segment = 0; segment < longest; ++segment) {
    for (auto& step : steps) {
      if (segment < step.size()) Add(std::move(step[segment]));
    }
  }
}

// Ascending, each once.
std::vector<int> Builder::WaitsOf(const ScheduledOperation& operation) {
  const int index = static_cast<int>(operations_.size());
  if (operation.kind != StepKind::kSend) return history_.Write(index, operation.range);
  std::vector<int> waits_for = history_.Read(index, operation.range);
  const bool goes_on = !before_.mutual() || before_.sends_to.contains(operation.peer);
  if (goes_on) return waits_for;
  for (const auto& [peer, last] : before_.last_received) waits_for.push_back(last);
  std::ranges::sort(waits_for);
  waits_for.erase(std::unique(waits_for.begin(), waits_for.end()), waits_for.end());
  return waits_for;
}

void Builder::Add(ScheduledOperation operation) {
  const int index = static_cast<int>(operations_.size());
  const bool send = operation.kind == StepKind::kSend;
  const std::vector<int> waits_for = WaitsOf(operation);
  if (send) {
    now_.sends_to.insert(operation.peer);
  } else {
    now_.last_received[operation.peer] = index;
  }
  operation.waits_for = static_cast<int>(waits_for.size());
  for (const int earlier : waits_for) {
    operations_[earlier].followers.push_back(index);
    if (!send && operations_[earlier].round == operation.round) operation.staged = true;
  }
  operations_.push_back(std::move(operation));
}

std::vector<ScheduledOperation> Builder::Finish() {
  for (ScheduledOperation& operation : operations_) {
    const Key key{operation.peer, DirectionOf(operation.kind)};
    operation.label.check = conversations_.at(key).digest.bits();
  }
  return std::move(operations_);
}

}  // namespace

Schedule::Schedule(const Plan& plan, int rank, Collective collective)
    : collective_(std::move(collective)), rounds_(static_cast<int>(plan.rounds.size())) {
  Builder builder(rank, collective_);
  for (int round = 0; round < rounds_; ++round) builder.AddRound(plan.rounds[round], round);
  operations_ = builder.Finish();
  for (const ScheduledOperation& operation : operations_) {
    if (!operation.staged) continue;
    largest_staged_elements_ = std::max(largest_staged_elements_, operation.range.count);
  }
}

}  // namespace ringtail
