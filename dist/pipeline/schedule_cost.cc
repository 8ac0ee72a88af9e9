#include "dist/pipeline/schedule_cost.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/check.h"
#include "core/text/counted.h"
#include "core/units.h"

namespace ringtail {
namespace {

constexpr int kNone = -1;
constexpr double kNever = std::numeric_limits<double>::infinity();

// An operation or a message that has taken place.
struct Event {
  bool is_transfer = false;
  PassKind pass = PassKind::kForward;
  int stage = 0;  // that computes, or sends
  double start = 0;
  double free = 0;    // when the stage, or the ports and the sender's slot, are free again
  double end = 0;     // when it has been computed, or has arrived
  int cause = kNone;  // the event whose end, or whose free, was its start
};

// The latest of the events that something waits for.
struct Begin {
  double time = 0;
  int cause = kNone;
};

// One direction of a boundary: its messages in order, as the events that each went through.
struct Lane {
  int64_t bytes = 0;
  std::vector<int> produced, transferred, consumed;
};

class Simulator {
 public:
  Simulator(const PipelineShape& shape, const PipelineCosts& costs)
      : shape_(shape),
        costs_(costs),
        next_(shape.stages, 0),
        computed_(shape.stages, kNone),
        sent_(shape.stages, kNone),
        received_(shape.stages, kNone),
        lanes_(2 * static_cast<size_t>(shape.stages - 1)) {
    for (int s = 0; s < shape.stages; ++s) operations_.push_back(StageOperations(shape, s));
    for (size_t b = 0; b < costs.boundaries.size(); ++b) {
      lanes_[2 * b].bytes = costs.boundaries[b].activation_bytes;
      lanes_[2 * b + 1].bytes = costs.boundaries[b].gradient_bytes;
    }
  }

  ScheduleCost Run() {
    const size_t messages = lanes_.size() * shape_.micro_batches;
    const size_t operations = 2 * static_cast<size_t>(shape_.stages) * shape_.micro_batches;
    events_.reserve(messages + operations);
    while (events_.size() < messages + operations) Advance();
    return Report();
  }

 private:
  // Whatever begins first, of all that could be next on each stage and lane. What is not there yet
  // begins later, as it waits for one of these: so ports serve who comes first.
  void Advance() {
    Begin first{kNever, kNone};
    int stage = kNone, lane = kNone;
    for (int s = 0; s < shape_.stages; ++s) {
      const Begin begin = BeginOfOperation(s);
      if (begin.time < first.time) first = begin, stage = s;
    }
    for (size_t l = 0; l < lanes_.size(); ++l) {
      const Begin begin = BeginOfTransfer(static_cast<int>(l));
      if (begin.time < first.time) first = begin, lane = static_cast<int>(l);
    }
    RT_CHECK(first.time < kNever, "a schedule of a pipeline has no deadlock");
    lane == kNone ? Compute(stage, first) : Transfer(lane, first);
  }

  void Await(int event, Begin* begin) const { Await(event, events_[event].end, begin); }
  static void Await(int event, double until, Begin* begin) {
    if (until > begin->time || begin->cause == kNone) *begin = {until, event};
  }
  // Waits until entry `index` of a list of events is there; negative: there is nothing to wait for.
  // False if it has not begun.
  bool AwaitEntry(const std::vector<int>& list, int index, bool to_be_free, Begin* begin) const {
    if (index < 0) return true;
    if (index >= static_cast<int>(list.size())) return false;
    const Event& event = events_[list[index]];
    Await(list[index], to_be_free ? event.free : event.end, begin);
    return true;
  }

  Lane& LaneOf(const BoundaryMessage& message) {
    const int boundary = std::min(message.from, message.to);
    return lanes_[2 * boundary + (message.pass == PassKind::kForward ? 0 : 1)];
  }
  int Sender(int lane) const { return lane / 2 + lane % 2; }
  int Receiver(int lane) const { return lane / 2 + 1 - lane % 2; }

  Begin BeginOfOperation(int stage) {
    constexpr Begin kNotYet{kNever, kNone};
    if (next_[stage] == operations_[stage].size()) return kNotYet;
    const StageOperation& operation = operations_[stage][next_[stage]];
    Begin begin;
    if (computed_[stage] != kNone) Await(computed_[stage], &begin);
    const auto received = ReceivedBefore(operation, stage, shape_.stages);
    if (received && !AwaitEntry(LaneOf(*received).transferred, operation.micro_batch,
                                /*to_be_free=*/false, &begin)) {
      return kNotYet;
    }
    const auto sent = SentAfter(operation, stage, shape_.stages);
    if (sent && !AwaitEntry(LaneOf(*sent).transferred, operation.micro_batch - costs_.slots,
                            /*to_be_free=*/true, &begin)) {
      return kNotYet;
    }
    return begin;
  }

  Begin BeginOfTransfer(int index) const {
    constexpr Begin kNotYet{kNever, kNone};
    const Lane& lane = lanes_[index];
    const int message = static_cast<int>(lane.transferred.size());
    Begin begin;
    if (!AwaitEntry(lane.produced, message, /*to_be_free=*/false, &begin)) return kNotYet;
    if (!AwaitEntry(lane.consumed, message - costs_.slots, /*to_be_free=*/false, &begin)) {
      return kNotYet;
    }
    // (The receiver's port is busy as long as the sender's, only alpha later.)
    for (const int port : {sent_[Sender(index)], received_[Receiver(index)]}) {
      if (port != kNone) Await(port, events_[port].free, &begin);
    }
    return begin;
  }

  void Compute(int stage, const Begin& begin) {
    const StageOperation& operation = operations_[stage][next_[stage]++];
    const StageCost& cost = costs_.stages[stage];
    const bool forward = operation.pass == PassKind::kForward;
    const double end = begin.time + (forward ? cost.forward_s : cost.backward_s);
    const int event = Add({.is_transfer = false,
                           .pass = operation.pass,
                           .stage = stage,
                           .start = begin.time,
                           .free = end,
                           .end = end,
                           .cause = begin.cause});
    computed_[stage] = event;
    if (const auto received = ReceivedBefore(operation, stage, shape_.stages)) {
      LaneOf(*received).consumed.push_back(event);
    }
    if (const auto sent = SentAfter(operation, stage, shape_.stages)) {
      LaneOf(*sent).produced.push_back(event);
    }
  }

  void Transfer(int index, const Begin& begin) {
    Lane& lane = lanes_[index];
    const LinkModel& link = costs_.link;
    const int event =
        Add({.is_transfer = true,
             .pass = index % 2 == 0 ? PassKind::kForward : PassKind::kBackward,
             .stage = Sender(index),
             .start = begin.time,
             .free = begin.time + static_cast<double>(lane.bytes) * link.seconds_per_byte,
             .end = begin.time + SecondsOfMessage(lane.bytes, link),
             .cause = begin.cause});
    lane.transferred.push_back(event);
    sent_[Sender(index)] = received_[Receiver(index)] = event;
  }

  int Add(const Event& event) {
    events_.push_back(event);
    return static_cast<int>(events_.size()) - 1;
  }

  ScheduleCost Report() const {
    ScheduleCost cost;
    cost.busy_s.assign(shape_.stages, 0);
    cost.start_s.resize(shape_.stages);
    int last = kNone;
    for (size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (event.is_transfer) continue;
      cost.busy_s[event.stage] += event.end - event.start;
      cost.start_s[event.stage].push_back(event.start);
      if (last == kNone || event.end > events_[last].end) last = static_cast<int>(i);
    }
    cost.step_s = events_[last].end;
    for (int s = 0; s < shape_.stages; ++s) {
      cost.bubble.push_back(cost.step_s > 0 ? 1 - cost.busy_s[s] / cost.step_s : 0);
      cost.peak_activation_bytes.push_back(CountMostAlive(operations_[s]) *
                                           costs_.stages[s].kept_bytes);
    }
    cost.critical_path = PathTo(last);
    return cost;
  }

  std::vector<PathPart> PathTo(int last) const {
    std::vector<PathPart> parts;
    double until = events_[last].end;
    for (int i = last; i != kNone; i = events_[i].cause) {
      const Event& event = events_[i];
      auto part = std::find_if(parts.begin(), parts.end(), [&](const PathPart& p) {
        return p.is_transfer == event.is_transfer && p.stage == event.stage &&
               (!p.is_transfer || p.pass == event.pass);
      });
      if (part == parts.end()) {
        parts.push_back({event.is_transfer, event.pass, event.stage, 0, 0, 0});
        part = parts.end() - 1;
      }
      ++(event.pass == PassKind::kForward ? part->forwards : part->backwards);
      part->seconds += until - event.start;
      until = event.start;
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const PathPart& a, const PathPart& b) { return a.seconds > b.seconds; });
    return parts;
  }

  const PipelineShape shape_;
  const PipelineCosts& costs_;
  std::vector<std::vector<StageOperation>> operations_;
  std::vector<size_t> next_;          // by stage: the operation that it has not begun
  std::vector<int> computed_;         // by stage: the last event of its processor, ...
  std::vector<int> sent_, received_;  // ... of its two ports
  std::vector<Lane> lanes_;           // by boundary: activations, gradients
  std::vector<Event> events_;
};

std::string DescribePart(const PathPart& part) {
  if (part.is_transfer) {
    const bool forward = part.pass == PassKind::kForward;
    return fmt::format("{} from stage {} to {} ({})", forward ? "activations" : "gradients",
                       part.stage, forward ? part.stage + 1 : part.stage - 1,
                       Counted(part.forwards + part.backwards, "message"));
  }
  return fmt::format("stage {} ({}, {})", part.stage, Counted(part.forwards, "forward"),
                     Counted(part.backwards, "backward"));
}

}  // namespace

double SecondsOfMessage(int64_t bytes, const LinkModel& link) {
  return bytes > 0 ? link.latency_s + static_cast<double>(bytes) * link.seconds_per_byte : 0;
}

double ScheduleCost::MeanBubble() const {
  return std::accumulate(bubble.begin(), bubble.end(), 0.0) / static_cast<double>(bubble.size());
}

ScheduleCost CostOfSchedule(const PipelineShape& shape, const PipelineCosts& costs) {
  RT_CHECK(static_cast<int>(costs.stages.size()) == shape.stages &&
               costs.boundaries.size() + 1 == costs.stages.size(),
           "every stage has a cost, and every boundary between two");
  RT_CHECK(costs.slots >= 1, "a message needs a slot");
  return Simulator(shape, costs).Run();
}

std::string DescribeCriticalPath(const ScheduleCost& cost) {
  std::string text;
  for (const PathPart& part : cost.critical_path) {
    if (part.seconds <= 0) continue;
    text += fmt::format("{}{:.1f} % {}", text.empty() ? "" : ", ",
                        kPercent * part.seconds / cost.step_s, DescribePart(part));
  }
  return text;
}

}  // namespace ringtail
