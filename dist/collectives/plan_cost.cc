#include "dist/collectives/plan_cost.h"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "core/check.h"

namespace ringtail {
namespace {

struct Port {
  double out_free = 0, in_free = 0;  // when the messages before have passed
};

// A message that has left and whose receive is posted.
struct Transfer {
  int from = 0, to = 0;
  double bytes = 0;
  bool adds = false;
};

// What happens at a time: a rank enters its next round, or a transfer reaches its receiver.
struct Event {
  double time = 0;
  int64_t order = 0;  // among events of the same time: as they were scheduled
  bool is_transfer = false;
  int rank = 0;
  Transfer transfer;

  bool operator>(const Event& other) const {
    return std::tie(time, order) > std::tie(other.time, other.order);
  }
};

class Clock {
 public:
  Clock(const std::vector<Plan>& plans, const Topology& topology, const NetworkModel& network)
      : plans_(plans),
        topology_(topology),
        network_(network),
        ranks_(plans.size()),
        rank_ports_(plans.size()),
        host_ports_(static_cast<size_t>(topology.hosts())) {}

  double Run() {
    for (size_t rank = 0; rank < plans_.size(); ++rank) ScheduleRound(static_cast<int>(rank), 0);
    double now = 0;
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now = std::max(now, event.time);
      if (event.is_transfer) {
        Receive(event.time, event.transfer);
      } else {
        EnterRound(event.time, event.rank);
      }
    }
    for (size_t rank = 0; rank < plans_.size(); ++rank) {
      RT_CHECK(ranks_[rank].entered > plans_[rank].rounds.size(), "plans must fit each other");
    }
    return now;
  }

 private:
  struct Rank {
    size_t entered = 0;    // rounds
    size_t open = 0;       // steps of this round
    double round_end = 0;  // of the steps that have finished
    double adding_until = 0;
  };
  struct Channel {                   // from one rank to another: what has not met its partner
    std::deque<double> first_bytes;  // of messages: when they arrive
    std::deque<std::pair<double, bool>> receives;  // when they were posted; whether they add
  };

  bool SameHost(int a, int b) const {
    return topology_.host_of_rank[static_cast<size_t>(a)] ==
           topology_.host_of_rank[static_cast<size_t>(b)];
  }
  const LinkModel& Link(int a, int b) const {
    return SameHost(a, b) ? network_.within_host : network_.between_hosts;
  }
  Port& PortOf(int rank, int peer) {
    const auto r = static_cast<size_t>(rank);
    return SameHost(rank, peer) ? rank_ports_[r]
                                : host_ports_[static_cast<size_t>(topology_.host_of_rank[r])];
  }

  void ScheduleRound(int rank, double time) {
    events_.push({.time = time, .order = next_order_++, .rank = rank});
  }

  void EnterRound(double now, int me) {
    Rank& rank = ranks_[static_cast<size_t>(me)];
    const std::vector<Round>& rounds = plans_[static_cast<size_t>(me)].rounds;
    if (rank.entered++ == rounds.size()) return;  // finished
    const std::vector<Step>& steps = rounds[rank.entered - 1].steps;
    rank.round_end = now;
    rank.open = steps.size() + 1;  // this one, so that the round does not end in the loop
    for (const Step& step : steps) Start(now, me, step);
    FinishStep(me, now);
  }

  void Start(double now, int me, const Step& step) {
    const double bytes = static_cast<double>(step.range.count) * kElementBytes;
    if (bytes == 0) {  // not sent
      FinishStep(me, now);
      return;
    }
    const bool sends = step.kind == StepKind::kSend;
    const int from = sends ? me : step.peer, to = sends ? step.peer : me;
    Channel& channel = channels_[{from, to}];
    if (sends) {
      const LinkModel& link = Link(from, to);
      Port& port = PortOf(from, to);
      const double begin = std::max(now, port.out_free);
      port.out_free = begin + bytes * link.seconds_per_byte;
      channel.first_bytes.push_back(begin + link.latency_s);
      FinishStep(me, port.out_free);
    } else {
      channel.receives.emplace_back(now, step.kind == StepKind::kReceiveReduce);
    }
    if (channel.first_bytes.empty() || channel.receives.empty()) return;
    const auto [posted, adds] = channel.receives.front();
    events_.push({.time = std::max(channel.first_bytes.front(), posted),
                  .order = next_order_++,
                  .is_transfer = true,
                  .transfer = {.from = from, .to = to, .bytes = bytes, .adds = adds}});
    channel.receives.pop_front();
    channel.first_bytes.pop_front();
  }

  void Receive(double now, const Transfer& transfer) {
    const LinkModel& link = Link(transfer.from, transfer.to);
    Port& port = PortOf(transfer.to, transfer.from);
    double& adding_until = ranks_[static_cast<size_t>(transfer.to)].adding_until;
    const double begin = std::max({now, port.in_free, adding_until});
    port.in_free = begin + transfer.bytes * link.seconds_per_byte;
    adding_until =
        port.in_free + (transfer.adds ? transfer.bytes * link.reduce_seconds_per_byte : 0);
    FinishStep(transfer.to, adding_until);
  }

  void FinishStep(int me, double time) {
    Rank& rank = ranks_[static_cast<size_t>(me)];
    rank.round_end = std::max(rank.round_end, time);
    if (--rank.open == 0) ScheduleRound(me, rank.round_end);
  }

  const std::vector<Plan>& plans_;
  const Topology& topology_;
  const NetworkModel& network_;
  std::vector<Rank> ranks_;
  std::vector<Port> rank_ports_, host_ports_;
  std::map<std::pair<int, int>, Channel> channels_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  int64_t next_order_ = 0;
};

}  // namespace

PlanCost CostOfPlans(const std::vector<Plan>& plans, const Topology& topology,
                     const NetworkModel& network) {
  RT_CHECK(std::ssize(plans) == topology.world(), "every rank must have a plan");
  PlanCost cost;
  for (const Plan& plan : plans) {
    int64_t sent = 0, received = 0, messages = 0;
    for (const Round& round : plan.rounds) {
      for (const Step& step : round.steps) {
        const bool sends = step.kind == StepKind::kSend;
        (sends ? sent : received) += step.range.count * kElementBytes;
        messages += sends && step.range.count > 0 ? 1 : 0;
      }
    }
    cost.rounds = std::max<int64_t>(cost.rounds, std::ssize(plan.rounds));
    cost.sent_bytes = std::max(cost.sent_bytes, sent);
    cost.sent_messages = std::max(cost.sent_messages, messages);
    cost.received_bytes = std::max(cost.received_bytes, received);
  }
  cost.seconds = Clock(plans, topology, network).Run();
  return cost;
}

PlanCost CostOfPlans(const std::vector<Plan>& plans, const LinkModel& links) {
  const Topology alone = Topology::Blocks(static_cast<int>(plans.size()), 1);
  return CostOfPlans(plans, alone, {.within_host = links, .between_hosts = links});
}

}  // namespace ringtail
