#include "apps/emulator/clock/plan_run.h"

#include <algorithm>

#include "core/check.h"

namespace ringtail {

PlanRunOnNetwork::PlanRunOnNetwork(VirtualNetwork* network, std::shared_ptr<const Plans> plans,
                                   std::vector<int> workers, VirtualNetwork::Finished finished)
    : network_(network),
      queue_(network->queue_),
      plans_(std::move(plans)),
      workers_(std::move(workers)),
      finished_(std::move(finished)),
      members_(workers_.size()) {
  RT_CHECK(plans_->size() == workers_.size(), "every member must have a plan");
}

void PlanRunOnNetwork::Enter(int member) { ScheduleRound(member, queue_->now_ns()); }

void PlanRunOnNetwork::ScheduleRound(int member, int64_t time_ns) {
  queue_->Schedule(time_ns, worker(member), [self = shared_from_this(), member] {
    return self->cancelled_ ? OkStatus() : self->EnterRound(member);
  });
}

Status PlanRunOnNetwork::EnterRound(int me) {
  Member& member = members_[static_cast<size_t>(me)];
  const std::vector<Round>& rounds = (*plans_)[static_cast<size_t>(me)].rounds;
  RT_CHECK(member.entered <= rounds.size(), "a member enters once");
  if (member.entered++ == rounds.size()) return finished_(me);
  const std::vector<Step>& steps = rounds[member.entered - 1].steps;
  member.round_end_ns = queue_->now_ns();
  member.received = false;
  member.open = steps.size() + 1;  // this one, so that the round does not end in the loop
  for (const Step& step : steps) Start(me, step);
  FinishStep(me, queue_->now_ns());
  return OkStatus();
}

void PlanRunOnNetwork::Start(int me, const Step& step) {
  const double bytes = static_cast<double>(step.range.count) * kElementBytes;
  if (bytes == 0) {  // not sent
    FinishStep(me, queue_->now_ns());
    return;
  }
  const bool sends = step.kind == StepKind::kSend;
  const int from = sends ? me : step.peer, to = sends ? step.peer : me;
  Channel& channel = channels_[{from, to}];
  if (sends) {
    const auto [begin_ns, end_ns] = network_->Leave(worker(from), worker(to), bytes);
    const double latency_s = network_->Link(worker(from), worker(to)).latency_s;
    channel.first_bytes_ns.push_back(After(begin_ns, latency_s));
    FinishStep(me, end_ns);
  } else {
    channel.receives.push_back({queue_->now_ns(), step.kind == StepKind::kReceiveReduce});
  }
  if (!channel.first_bytes_ns.empty() && !channel.receives.empty()) Meet(from, to, bytes, &channel);
}

void PlanRunOnNetwork::Meet(int from, int to, double bytes, Channel* channel) {
  const Posted posted = channel->receives.front();
  const int64_t time_ns = std::max(channel->first_bytes_ns.front(), posted.time_ns);
  channel->receives.pop_front();
  channel->first_bytes_ns.pop_front();
  queue_->Schedule(time_ns, worker(to),
                   [self = shared_from_this(), from, to, bytes, adds = posted.adds] {
                     if (!self->cancelled_) self->Receive(from, to, bytes, adds);
                     return OkStatus();
                   });
}

void PlanRunOnNetwork::Receive(int from, int to, double bytes, bool adds) {
  int64_t& adding_until_ns = network_->adding_until_ns_[static_cast<size_t>(worker(to))];
  const int64_t arrived_ns = network_->Arrive(worker(from), worker(to), bytes, adding_until_ns);
  const double gamma = network_->Link(worker(from), worker(to)).reduce_seconds_per_byte;
  const double adding_s = adds ? bytes * gamma : 0;
  adding_until_ns = After(arrived_ns, adding_s);
  network_->cores_.TakeThread(worker(to), adding_s);
  members_[static_cast<size_t>(to)].received = true;
  FinishStep(to, adding_until_ns);
}

void PlanRunOnNetwork::FinishStep(int me, int64_t time_ns) {
  Member& member = members_[static_cast<size_t>(me)];
  member.round_end_ns = std::max(member.round_end_ns, time_ns);
  if (--member.open != 0) return;
  const int64_t end_ns = member.round_end_ns;
  ScheduleRound(me, member.received ? network_->WakesAt(worker(me), end_ns) : end_ns);
}

}  // namespace ringtail
