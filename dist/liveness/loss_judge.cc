#include "dist/liveness/loss_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ringtail {

std::optional<Verdict> LossJudge::OnLost(int rank, const Status& cause) {
  judge_->OnLost(rank);
  if (judge_->rank() != 0 && rank != 0) return {};
  // If this rank was stopped for long, it is not the others that are lost.
  if (auto paused = judge_->PauseVerdict()) return paused;
  if (judge_->rank() == 0) return {};
  return Verdict{.status = cause, .culprits = {0}};
}

LossVerdict LossJudge::Judge() {
  if (auto cut_off = judge_->CutOffVerdict()) return {.end = std::move(cut_off), .lost = {}};
  return judge_->rank() == 0 ? JudgeAll() : FollowRankZero();
}

// If this rank was stopped, that is the reason.
LossVerdict LossJudge::EndFor(const Accusation& accusation) const {
  if (auto paused = judge_->PauseVerdict()) return {.end = std::move(paused), .lost = {}};
  return {.end = Verdict{.status = accusation.status, .culprits = {accusation.rank}}, .lost = {}};
}

LossVerdict LossJudge::JudgeAll() {
  LossVerdict verdict;
  for (const Accusation& accusation : judge_->Accuse()) {
    if (accusation.rank == 0) return EndFor(accusation);
    // It may not have heard the others because it was stopped.
    const bool hangs = accusation.kind == Accusation::Kind::kHangs;
    if (!hangs && judge_->PauseVerdict()) return EndFor(accusation);
    verdict.lost.emplace(accusation.rank, accusation.status);
  }
  SettleQuarrels(&verdict);
  return verdict;
}

// A rank that has died is soon lost here, too; so the other has a while in which to be heard.
void LossJudge::SettleQuarrels(LossVerdict* verdict) {
  for (int rank = 1; rank < judge_->world_size(); ++rank) {
    for (int other = 1; other < judge_->world_size(); ++other) {
      const std::pair<int, int> pair(rank, other);
      const bool quarrel =
          !judge_->IsLost(rank) && !judge_->IsLost(other) && judge_->SaysLost(rank, other);
      if (!quarrel) {
        quarrels_.erase(pair);
        continue;
      }
      const Duration since = quarrels_.emplace(pair, judge_->awake()).first->second;
      const Duration patience = judge_->limits().silence_limit / 2;
      const bool lives = judge_->heard(other) > since + judge_->limits().interval;
      if (judge_->awake() - since < patience || !lives) continue;
      const int higher = std::max(rank, other);
      verdict->lost.emplace(
          higher,
          Status(StatusCode::kUnavailable,
                 fmt::format("{} and {} have lost each other, though both live: of the two "
                             "the higher one has to leave",
                             judge_->Describe(std::min(rank, other)), judge_->Describe(higher))));
    }
  }
}

LossVerdict LossJudge::FollowRankZero() {
  LossVerdict verdict;
  std::set<int> out_of_reach;
  for (const Accusation& accusation : judge_->Accuse()) {
    const bool matters = accusation.rank == 0 || accusation.rank == judge_->rank();
    if (matters) return EndFor(accusation);
    if (accusation.kind == Accusation::Kind::kOutOfReach) out_of_reach.insert(accusation.rank);
  }
  for (int rank = 1; rank < judge_->world_size(); ++rank) {
    judge_->Complain(rank, out_of_reach.contains(rank));
  }
  for (int rank = 1; rank < judge_->world_size(); ++rank) {
    if (judge_->IsLost(rank) || !judge_->SaysLost(0, rank)) continue;
    const Status cause(StatusCode::kUnavailable,
                       fmt::format("{} has lost {}", judge_->Describe(0), judge_->Describe(rank)));
    if (rank == judge_->rank()) return EndFor({.rank = rank, .status = cause});
    verdict.lost.emplace(rank, cause);
  }
  return verdict;
}

}  // namespace ringtail
