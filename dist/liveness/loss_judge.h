// LossJudge: in a world that outlives the loss of a rank (Transport::TolerateLosses), which ranks
// are lost, and whether this one may stay. It judges by what a LivenessJudge knows.
//
// All ranks must come to the same answer, so one decides: rank 0, whose loss ends the job.
//
//   rank 0      gives up who is silent, out of reach or hangs (liveness_judge.h);
//               of two others that have lost each other though both live, the higher one
//   the others  give up those that rank 0 has lost, as its heartbeats say; say whom they have lost or
//               cannot reach; end when they have lost rank 0, or it has lost them, or they hang
//
//       0 ---- 1       the cable between 1 and 2 is cut: both say that they have lost the other.
//        \    x        Rank 0 still hears 2, and gives it up; 1 and 2 hear of it: 1 stays, 2 ends.
//         `-- 2        Without rank 0's word each would be right.
//
// A connection that breaks is a loss at once, for the two at its ends (OnLost). Rank 0 ends, too, if
// it was stopped for long, or hears none of at least two others: then it is the one that is lost.
//
// Pure, as LivenessJudge. Thread-safety: none. Cost: a look at each pair of ranks.
#ifndef RINGTAIL_DIST_LIVENESS_LOSS_JUDGE_H_
#define RINGTAIL_DIST_LIVENESS_LOSS_JUDGE_H_

#include <map>
#include <optional>
#include <utility>

#include "dist/liveness/liveness_judge.h"

namespace ringtail {

struct LossVerdict {
  std::optional<Verdict> end;  // this rank's part in the world is over
  std::map<int, Status> lost;  // ranks to be given up, and why
};

class LossJudge {
 public:
  explicit LossJudge(LivenessJudge* judge) : judge_(judge) {}

  // `rank` is lost, as the transport says, or has been given up. What follows for this rank.
  std::optional<Verdict> OnLost(int rank, const Status& cause);
  // As often as LivenessJudge::Wake.
  LossVerdict Judge();

 private:
  using Duration = std::chrono::steady_clock::duration;

  LossVerdict EndFor(const Accusation& accusation) const;
  LossVerdict JudgeAll();  // rank 0's
  LossVerdict FollowRankZero();
  void SettleQuarrels(LossVerdict* verdict);

  LivenessJudge* const judge_;
  // When rank 0 heard first that the one has lost the other.
  std::map<std::pair<int, int>, Duration> quarrels_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_LOSS_JUDGE_H_
