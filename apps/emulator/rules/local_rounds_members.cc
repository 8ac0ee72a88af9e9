// LocalRoundsRule: workers that join, and workers that die.
#include <algorithm>
#include <utility>

#include "apps/emulator/rules/local_rounds_rule.h"

namespace ringtail {

// `number`: the round that they begin with. In an overlapped run they miss a change of their own in
// the round that is under way, but need its result.
Status LocalRoundsRule::SeatNewcomers(int64_t number, int source) {
  const auto round = rounds_.find(number);
  if (round == rounds_.end()) return OkStatus();
  for (const int worker : round->second.newcomers) {
    if (job_->is_dead(worker)) continue;
    RT_ASSIGN_OR_RETURN(Seat seat, NewSeat());
    seat.step = FirstStep(number);
    seat.round = number;
    seat.merged = seat.arrived = number - 1 - delay_;
    seat.taken = number - 1;
    seat.idle_since_ns = job_->queue()->now_ns();
    const auto to = seat.local->state(), from = seats_[source].local->state();
    for (size_t i = 0; i < to.size(); ++i) {
      std::ranges::copy(from[i].values, to[i].values.begin());
    }
    if (delay_ > 0) {
      seat.local->Take(0);
      rounds_[number - 1].listeners.push_back(worker);
    }
    seats_[worker] = std::move(seat);
    RT_RETURN_IF_ERROR(BeginStep(worker));
  }
  return OkStatus();
}

Status LocalRoundsRule::OnJoin(int worker) {
  joining_.push_back(worker);
  return OkStatus();
}

// A round may have waited for this worker alone to merge.
Status LocalRoundsRule::OnDeath(int /*worker*/) {
  std::vector<int64_t> numbers;
  for (const auto& [number, round] : rounds_) numbers.push_back(number);
  for (const int64_t number : numbers) {
    if (rounds_.contains(number)) RT_RETURN_IF_ERROR(EndRoundIfMerged(number));
  }
  return OkStatus();
}

// Workers that joined sit down when one that has a seat ends a round: without any, none ever does.
Status LocalRoundsRule::OnNotice(int worker) {
  std::erase(joining_, worker);
  std::erase(present_, worker);
  if (std::ranges::none_of(present_, [this](int w) { return Counts(w); })) {
    return FailedPrecondition(
        present_.empty() && joining_.empty()
            ? "no worker is left"
            : "no worker is left that has begun; those that joined wait for the end of a round");
  }
  const auto seat = seats_.find(worker);
  std::vector<int64_t> begun_again;
  for (auto& [number, round] : rounds_) {
    const bool taken = seat != seats_.end() && seat->second.taken >= number;
    if (taken || std::erase(round.members, worker) == 0) continue;
    std::erase(round.newcomers, worker);
    begun_again.push_back(number);
  }
  for (const int64_t number : begun_again) {
    RT_RETURN_IF_ERROR(BeginExchange(number));
    const Round& round = rounds_[number];
    if (round.taken == round.members.size() && !round.summed) RT_RETURN_IF_ERROR(Sum(number));
  }
  return OkStatus();
}

}  // namespace ringtail
