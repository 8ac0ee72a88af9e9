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
// For a rank that lives, while data moves.
constexpr int kLimitsWhileDataMoves = 3;
// The way of data has a heartbeat every other interval (progress_monitor.cc).
constexpr int kIntervalsOutOfReach = 6;

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

void LivenessJudge::NoteMoved(const Rank& rank, uint64_t moved) {
  if (moved != rank.told.moved) data_moved_ = awake_;
}

Heartbeat LivenessJudge::OnOwnProgress(const Progress::State& state,
                                       const StepTimes::Medians& medians, uint64_t moved) {
  Rank& own = ranks_[rank_];
  if (state.counter != own.told.counter) moved_ = awake_;
  NoteMoved(own, moved);
  ++own.beat;
  own.told.phase = state.phase;
  own.told.step = state.step;
  own.told.counter = state.counter;
  own.told.unchanged_ms = duration_cast<milliseconds>(awake_ - moved_).count();
  own.told.step_us = medians.step_us;
  own.told.compute_us = medians.compute_us;
  own.told.moved = moved;
  own.told.beats.clear();
  for (const Rank& rank : ranks_) {
    own.told.beats.push_back(rank.lost || rank.complaint ? kLostBeat : rank.beat);
  }
  own.heard = awake_;
  return own.told;
}

void LivenessJudge::KnowBeat(int rank, uint32_t beat) {
  Rank& of = ranks_[rank];
  if (beat == kLostBeat || beat <= of.beat) return;
  if (of.beat == 0) of.arrived = awake_;  // until now nothing could come
  of.beat = beat;
  of.heard = awake_;
}

Status LivenessJudge::OnHeartbeat(int peer, const Heartbeat& heartbeat) {
  Rank& rank = ranks_[peer];
  if (heartbeat.beats.size() != ranks_.size() || heartbeat.beats[peer] == 0 ||
      heartbeat.beats[peer] == kLostBeat) {
    return DataLoss(fmt::format("{} tells of {} ranks, not {}, or not of itself", describe_(peer),
                                heartbeat.beats.size(), ranks_.size()));
  }
  for (int other = 0; other < static_cast<int>(ranks_.size()); ++other) {
    if (other != rank_) KnowBeat(other, heartbeat.beats[other]);
  }
  // One of the two lanes may be slower.
  if (!rank.told.beats.empty() && heartbeat.beats[peer] < rank.told.beats[peer]) return {};
  if (heartbeat.counter < rank.told.counter) {
    return DataLoss(fmt::format("{} says that its counter went back from {} to {}", describe_(peer),
                                rank.told.counter, heartbeat.counter));
  }
  NoteMoved(rank, heartbeat.moved);
  rank.told = heartbeat;
  rank.heard = awake_;
  return {};
}

// Nothing has been heard of it for so long.
bool LivenessJudge::Quiet(int rank, Duration limit) const {
  return Expected(rank) && awake_ - ranks_[rank].heard >= limit;
}

bool LivenessJudge::Silent(int rank, Duration slack) const {
  const bool begun = ranks_[rank].beat > 0;
  const Duration limit =
      begun ? limits_.silence_limit : std::max(limits_.silence_limit, limits_.begin_limit);
  return Quiet(rank, limit - slack);
}

// It lives, but not for this rank. A rank that no rank has heard lately may have died, or this
// rank may be cut off: that is for the limit of silence, for all ranks at the same time.
bool LivenessJudge::OutOfReach(int rank) const {
  if (Quiet(rank, Duration(limits_.silence_limit) / 2)) return false;
  const Duration limit =
      std::max<Duration>(limits_.silence_limit, kIntervalsOutOfReach * Duration(limits_.interval));
  const bool data_moves = awake_ - data_moved_ < limit / 2;
  return Expected(rank) && ranks_[rank].beat > 0 &&
         awake_ - ranks_[rank].arrived >= (data_moves ? kLimitsWhileDataMoves : 1) * limit;
}

LivenessJudge::Duration LivenessJudge::StallLimit(const Heartbeat& told) const {
  const bool may_be_long = told.phase == Phase::kSetUp || told.phase == Phase::kEvaluation ||
                           told.phase == Phase::kCheckpoint;
  if (may_be_long || told.step_us == 0) return limits_.long_phase;
  return std::max<Duration>(limits_.stall_limit, microseconds(told.step_us) * kStepsPerStall);
}

bool LivenessJudge::Stalled(int rank, Duration slack) const {
  const Heartbeat& told = ranks_[rank].told;
  return !told.last && !ranks_[rank].lost && !WaitsForOthers(told.phase) &&
         milliseconds(told.unchanged_ms) >= StallLimit(told) - slack;
}

std::string LivenessJudge::DescribeSilent(int rank) const {
  if (ranks_[rank].beat == 0) {
    return fmt::format(
        "{} has sent nothing for {}, since this rank is connected to it: it is stopped or cut off, "
        "or cannot reach another rank",
        describe_(rank), Seconds(awake_ - ranks_[rank].heard));
  }
  return fmt::format("{} has sent nothing for {}, is stopped or cut off, and was {}",
                     describe_(rank), Seconds(awake_ - ranks_[rank].heard),
                     Place(ranks_[rank].told));
}

std::string LivenessJudge::DescribeOutOfReach(int rank) const {
  return fmt::format(
      "{} has sent nothing to this rank for {}, though it lives: the network between {} and {} is "
      "broken, and it was {}",
      describe_(rank), Seconds(awake_ - ranks_[rank].arrived), describe_(rank), describe_(rank_),
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
  bool any_lost = false, any_stalled = false;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    any_lost |= Silent(rank, {}) || OutOfReach(rank);
    any_stalled |= Stalled(rank, {});
  }
  if (!any_lost && !any_stalled) return {};
  if (any_lost && PauseVerdict()) return PauseVerdict();
  if (any_lost && HearsNoOther()) return CutOff();

  Verdict verdict;
  std::vector<std::string> sentences;
  for (const Accusation& accusation : Accuse(slack)) {
    sentences.push_back(accusation.status.message());
    verdict.culprits.push_back(accusation.rank);
  }
  verdict.status = {any_lost ? StatusCode::kUnavailable : StatusCode::kDeadlineExceeded,
                    Join(sentences)};
  return verdict;
}

std::vector<Accusation> LivenessJudge::Accuse(Duration slack) const {
  std::vector<Accusation> accusations;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (Silent(rank, slack)) {
      accusations.push_back({.rank = rank,
                             .kind = Accusation::Kind::kSilent,
                             .status = {StatusCode::kUnavailable, DescribeSilent(rank)}});
    } else if (Stalled(rank, slack)) {
      accusations.push_back({.rank = rank,
                             .kind = Accusation::Kind::kHangs,
                             .status = {StatusCode::kDeadlineExceeded, DescribeStalled(rank)}});
    } else if (OutOfReach(rank)) {
      accusations.push_back({.rank = rank,
                             .kind = Accusation::Kind::kOutOfReach,
                             .status = {StatusCode::kUnavailable, DescribeOutOfReach(rank)}});
    }
  }
  return accusations;
}

std::optional<Verdict> LivenessJudge::CutOffVerdict() const {
  for (const Accusation& accusation : Accuse()) {
    if (accusation.kind == Accusation::Kind::kHangs || !HearsNoOther()) continue;
    const std::optional<Verdict> paused = PauseVerdict();
    return paused ? paused : CutOff();
  }
  return {};
}

// If there are at least two others.
bool LivenessJudge::HearsNoOther() const {
  int quiet = 0, expected = 0;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    expected += Expected(rank);
    quiet += Quiet(rank, limits_.silence_limit - Slack());
  }
  return quiet == expected && expected >= 2;
}

std::optional<Verdict> LivenessJudge::PauseVerdict() const {
  if (paused_ == Duration::zero() || awake_ - pause_ended_ > limits_.silence_limit) return {};
  return Verdict{.status = {StatusCode::kUnavailable,
                            fmt::format("{}, this process, was stopped for {}; the others have "
                                        "continued without it",
                                        describe_(rank_), Seconds(paused_))},
                 .culprits = {rank_}};
}

// The others may be a little earlier than this rank's own judge.
std::optional<Verdict> LivenessJudge::OwnFault() const {
  if (auto paused = PauseVerdict()) return paused;
  if (!Stalled(rank_, Slack())) return {};
  return Verdict{.status = {StatusCode::kDeadlineExceeded, DescribeStalled(rank_)},
                 .culprits = {rank_}};
}

Verdict LivenessJudge::NotEnded(const std::vector<int>& open, milliseconds waited) const {
  Verdict verdict;
  std::vector<std::string> sentences;
  for (const int rank : open) {
    sentences.push_back(fmt::format("{} has not ended its heartbeat within {}, and is {}",
                                    describe_(rank), Seconds(waited), Place(ranks_[rank].told)));
    verdict.culprits.push_back(rank);
  }
  verdict.status = {StatusCode::kDeadlineExceeded, Join(sentences)};
  return verdict;
}

uint64_t LivenessJudge::moved() const {
  uint64_t moved = 0;
  for (const Rank& rank : ranks_) moved += rank.told.moved + rank.told.counter;
  return moved;
}

}  // namespace ringtail
