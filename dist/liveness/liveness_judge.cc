#include "dist/liveness/liveness_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace ringtail {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kStepsPerStall = 20;

std::string Seconds(std::chrono::steady_clock::duration time) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
}

std::string Place(const Heartbeat& told) {
  return fmt::format("in {} of step {}", PhaseName(told.phase), told.step);
}

// "a; b; c"
std::string Join(const std::vector<std::string>& sentences) {
  return fmt::format("{}", fmt::join(sentences, "; "));
}

}  // namespace

LivenessJudge::LivenessJudge(int rank, int world_size, const LivenessLimits& limits,
                             RankDescriber describe, TimePoint now)
    : rank_(rank), limits_(limits), describe_(std::move(describe)), ranks_(world_size), now_(now) {
  RT_CHECK(limits.interval.count() > 0 && limits.silence_limit >= 3 * limits.interval &&
               limits.stall_limit >= 3 * limits.interval,
           "a limit is several heartbeats long");
}

void LivenessJudge::Wake(TimePoint now) {
  const Duration gap = now - now_;
  now_ = now;
  awake_ += std::min<Duration>(gap, limits_.interval);
  // The others may have begun to count a little earlier than we were stopped.
  if (gap >= limits_.silence_limit - 2 * limits_.interval) {
    paused_ = gap;
    pause_ended_ = awake_;
  }
}

Heartbeat LivenessJudge::OnOwnProgress(const Progress::State& state,
                                       const StepTimes::Medians& medians) {
  Rank& own = ranks_[rank_];
  if (state.counter != own.told.counter) moved_ = awake_;
  own.told.phase = state.phase;
  own.told.step = state.step;
  own.told.counter = state.counter;
  own.told.unchanged_ms = duration_cast<milliseconds>(awake_ - moved_).count();
  own.told.step_us = medians.step_us;
  own.told.compute_us = medians.compute_us;
  own.heard = awake_;
  return own.told;
}

Status LivenessJudge::OnHeartbeat(int peer, const Heartbeat& heartbeat) {
  Rank& rank = ranks_[peer];
  if (heartbeat.counter < rank.told.counter) {
    return DataLoss(fmt::format("{} says that its counter went back from {} to {}", describe_(peer),
                                rank.told.counter, heartbeat.counter));
  }
  rank.told = heartbeat;
  rank.heard = awake_;
  return {};
}

bool LivenessJudge::Silent(int rank, Duration limit) const {
  return rank != rank_ && !ranks_[rank].told.last && awake_ - ranks_[rank].heard >= limit;
}

LivenessJudge::Duration LivenessJudge::StallLimit(const Heartbeat& told) const {
  const bool may_be_long = told.phase == Phase::kSetUp || told.phase == Phase::kEvaluation ||
                           told.phase == Phase::kCheckpoint;
  if (may_be_long || told.step_us == 0) return limits_.long_phase;
  return std::max<Duration>(limits_.stall_limit, microseconds(told.step_us) * kStepsPerStall);
}

bool LivenessJudge::Stalled(int rank, Duration slack) const {
  const Heartbeat& told = ranks_[rank].told;
  return !told.last && told.phase != Phase::kExchange &&
         milliseconds(told.unchanged_ms) >= StallLimit(told) - slack;
}

std::string LivenessJudge::DescribeSilent(int rank) const {
  return fmt::format("{} has sent nothing for {}, is stopped or cut off, and was {}",
                     describe_(rank), Seconds(awake_ - ranks_[rank].heard),
                     Place(ranks_[rank].told));
}

std::string LivenessJudge::DescribeStalled(int rank) const {
  const Heartbeat& told = ranks_[rank].told;
  return fmt::format("{} is alive, but its training thread has not moved for {}, {}",
                     describe_(rank), Seconds(milliseconds(told.unchanged_ms)), Place(told));
}

Verdict LivenessJudge::CutOff() const {
  return {.status = {StatusCode::kUnavailable,
                     fmt::format("{}, this rank, lost all the others at once: it has heard nothing "
                                 "for {}, and is itself cut off from the network",
                                 describe_(rank_), Seconds(limits_.silence_limit))},
          .culprits = {rank_},
          .cut_off = true};
}

std::optional<Verdict> LivenessJudge::Judge() const {
  const Duration slack = Slack();
  bool any_silent = false, any_stalled = false;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    any_silent |= Silent(rank, limits_.silence_limit);
    any_stalled |= Stalled(rank, {});
  }
  if (!any_silent && !any_stalled) return {};
  if (any_silent && PauseVerdict()) return PauseVerdict();

  Verdict verdict;
  std::vector<std::string> sentences;
  int silent = 0, expected = 0;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    expected += rank != rank_ && !ranks_[rank].told.last;
    if (Silent(rank, limits_.silence_limit - slack)) {
      ++silent;
      sentences.push_back(DescribeSilent(rank));
    } else if (Stalled(rank, slack)) {
      sentences.push_back(DescribeStalled(rank));
    } else {
      continue;
    }
    verdict.culprits.push_back(rank);
  }
  if (any_silent && silent == expected && expected >= 2) return CutOff();
  verdict.status = {any_silent ? StatusCode::kUnavailable : StatusCode::kDeadlineExceeded,
                    Join(sentences)};
  return verdict;
}

std::optional<Verdict> LivenessJudge::PauseVerdict() const {
  if (paused_ == Duration::zero() || awake_ - pause_ended_ > limits_.silence_limit) return {};
  return Verdict{.status = {StatusCode::kUnavailable,
                            fmt::format("{}, this process, was stopped for {}; the others have "
                                        "gone on without it",
                                        describe_(rank_), Seconds(paused_))},
                 .culprits = {rank_}};
}

// The others may be a little earlier than this rank's own judge.
std::optional<Verdict> LivenessJudge::OwnFault() const {
  if (const auto paused = PauseVerdict()) return paused;
  if (!Stalled(rank_, Slack())) return {};
  return Verdict{.status = {StatusCode::kDeadlineExceeded, DescribeStalled(rank_)},
                 .culprits = {rank_}};
}

Verdict LivenessJudge::NotEnded(milliseconds waited) const {
  Verdict verdict;
  std::vector<std::string> sentences;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (rank == rank_ || ranks_[rank].told.last) continue;
    sentences.push_back(fmt::format("{} has not ended its heartbeat within {}, and is {}",
                                    describe_(rank), Seconds(waited), Place(ranks_[rank].told)));
    verdict.culprits.push_back(rank);
  }
  verdict.status = {StatusCode::kDeadlineExceeded, Join(sentences)};
  return verdict;
}

}  // namespace ringtail
