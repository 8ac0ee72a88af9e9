// LivenessJudge: who hangs, from what the ranks tell of themselves. No thread, socket or clock of
// its own: it is told what has come and how late it is, so that a test can play any story.
//
// When one rank of a synchronous world hangs, all others soon wait: for their neighbour, who waits
// for the next. Whoever only measures how long he has waited blames the neighbour.
//
//     rank 0  -- waits for -->  rank 1  -- waits for -->  rank 2  backward of step 17, for 10 s
//     exchange, step 17         exchange, step 17         ^ hangs
//
// So each judges all others by what they say themselves:
//
//   nothing comes from a rank for silence_limit      stopped, or cut off
//   its counter has not moved for its stall limit,   alive, but its training thread hangs
//     and it is not in an exchange
//   nothing comes from any rank (of two or more)     this rank is cut off
//
// The stall limit of a rank is stall_limit, or 20 of its steps, whichever is longer; long_phase in
// phases that may be long, and before its first step has ended, when nobody knows its pace. Ranks
// that come close to a limit in the moment in which another reaches it are named together with it.
//
// This rank itself may have been stopped, or got no processor. Then it has not heard the others
// because it did not listen: time counts for at most one interval between two calls of Wake. And if
// the pause was long, the others may have given this rank up. It does not end by itself for that
// (all may have been stopped, with their machine, and then nothing is wrong), but if the world ends
// within silence_limit after it woke up, then that is why (PauseVerdict).
//
// This rank judges itself, too: it is the first to know that its training thread hangs.
// Thread-safety: none. Cost: a look at each rank.
#ifndef RINGTAIL_DIST_LIVENESS_LIVENESS_JUDGE_H_
#define RINGTAIL_DIST_LIVENESS_LIVENESS_JUDGE_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/liveness/heartbeat.h"
#include "dist/liveness/progress.h"
#include "dist/liveness/step_times.h"

namespace ringtail {

struct LivenessLimits {
  std::chrono::milliseconds interval{1'000};  // between two heartbeats
  // Each at least three intervals.
  std::chrono::milliseconds silence_limit{10'000}, stall_limit{10'000};
  std::chrono::milliseconds long_phase{600'000};  // set-up, evaluation, checkpoint
};

// "rank 3 (node7, pid 4711)"
using RankDescriber = std::function<std::string(int rank)>;

struct Verdict {
  Status status;              // names the culprits
  std::vector<int> culprits;  // none: another rank ended the world
  bool cut_off = false;       // this rank is the culprit: it hears nobody
};

class LivenessJudge {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // All ranks count as heard at `now`.
  LivenessJudge(int rank, int world_size, const LivenessLimits& limits, RankDescriber describe,
                TimePoint now);

  // It is `now`; to be called several times in an interval.
  void Wake(TimePoint now);

  // What this rank is to tell the others; all but sequence and last.
  Heartbeat OnOwnProgress(const Progress::State& state, const StepTimes::Medians& medians);
  // DataLoss if it does not go on from the one before.
  Status OnHeartbeat(int peer, const Heartbeat& heartbeat);
  // Some other message of this peer has come. On a slow wire, heartbeats wait behind large ones.
  void OnOtherMessage(int peer) { ranks_[peer].heard = awake_; }

  std::optional<Verdict> Judge() const;
  // Why the others have ended the world, if it was for this rank: it was stopped, or hangs.
  std::optional<Verdict> OwnFault() const;
  // Which ranks have not said their last heartbeat, of those who should have within `waited`.
  Verdict NotEnded(std::chrono::milliseconds waited) const;

  uint64_t compute_us(int rank) const { return ranks_[rank].told.compute_us; }

 private:
  using Duration = std::chrono::steady_clock::duration;

  struct Rank {
    Heartbeat told;    // the latest
    Duration heard{};  // awake_ at that time
  };

  // Heartbeats come at intervals: what was cut at one moment was heard at several.
  Duration Slack() const { return limits_.interval * 3 / 2; }
  bool Silent(int rank, Duration limit) const;
  bool Stalled(int rank, Duration slack) const;
  Duration StallLimit(const Heartbeat& told) const;
  std::string DescribeSilent(int rank) const;
  std::string DescribeStalled(int rank) const;
  Verdict CutOff() const;
  std::optional<Verdict> PauseVerdict() const;  // if this rank had been stopped

  const int rank_;
  const LivenessLimits limits_;
  const RankDescriber describe_;
  std::vector<Rank> ranks_;  // this one, too
  TimePoint now_;
  Duration awake_{};        // for how long this rank has been running
  Duration moved_{};        // awake_ when its own counter moved last
  Duration paused_{};       // its latest long pause; zero: none
  Duration pause_ended_{};  // awake_ at its end
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_LIVENESS_JUDGE_H_
