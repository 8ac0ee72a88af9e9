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
//   nobody hears a rank for silence_limit            stopped, or cut off
//   its counter has not moved for its stall limit,   alive, but its training thread hangs
//     and it is not in an exchange
//   nothing comes from any rank (of two or more)     this rank is cut off
//   a rank lives, but nothing comes to this one      the way between the two is broken
//
// A rank is heard when it is known of a later beat of its own, from it or from a third rank
// (heartbeat.h), or when bytes of it arrive. On a link that is full of data heartbeats get lost and
// come late; hence third ranks, and hence what lives may be out of reach for three times as long
// while data moves anywhere. A rank that has not begun to beat may still be waiting for its
// connections to others; it has begin_limit for that, in which it finds out itself whom it cannot
// reach.
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
  std::chrono::milliseconds begin_limit{
      0};  // for a first heartbeat, if that is longer than silence
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

  // What this rank is to tell the others; all but sequence and last. `moved`: Heartbeat::moved.
  Heartbeat OnOwnProgress(const Progress::State& state, const StepTimes::Medians& medians,
                          uint64_t moved = 0);
  // DataLoss if it does not go on from the one before. An older one is nothing new.
  Status OnHeartbeat(int peer, const Heartbeat& heartbeat);
  // Something of this peer has come the way that data comes: a heartbeat, or a piece of a message.
  void OnArrival(int peer) { ranks_[peer].heard = ranks_[peer].arrived = awake_; }

  std::optional<Verdict> Judge() const;
  // Why the others have ended the world, if it was for this rank: it was stopped, or hangs.
  std::optional<Verdict> OwnFault() const;
  // These ranks have not ended their heartbeats within `waited`.
  Verdict NotEnded(const std::vector<int>& open, std::chrono::milliseconds waited) const;

  // Grows while data moves between any two ranks, and while any training thread moves.
  uint64_t moved() const;
  uint64_t compute_us(int rank) const { return ranks_[rank].told.compute_us; }

 private:
  using Duration = std::chrono::steady_clock::duration;

  struct Rank {
    Heartbeat told;               // the latest
    uint32_t beat = 0;            // the latest of its own that is known from anybody; 0: none
    Duration heard{}, arrived{};  // awake_ at that time
  };

  // Heartbeats come at intervals: what was cut at one moment was heard at several.
  Duration Slack() const { return limits_.interval * 3 / 2; }
  bool Expected(int rank) const { return rank != rank_ && !ranks_[rank].told.last; }
  bool Quiet(int rank, Duration limit) const;
  bool Silent(int rank, Duration slack) const;
  bool OutOfReach(int rank) const;
  void KnowBeat(int rank, uint32_t beat);
  void NoteMoved(const Rank& rank, uint64_t moved);
  bool Stalled(int rank, Duration slack) const;
  Duration StallLimit(const Heartbeat& told) const;
  std::string DescribeSilent(int rank) const;
  std::string DescribeOutOfReach(int rank) const;
  std::string DescribeStalled(int rank) const;
  bool HearsNobody() const;
  Verdict CutOff() const;
  std::optional<Verdict> PauseVerdict() const;  // if this rank had been stopped

  const int rank_;
  const LivenessLimits limits_;
  const RankDescriber describe_;
  std::vector<Rank> ranks_;  // this one, too
  TimePoint now_;
  Duration awake_{};        // for how long this rank has been running
  Duration moved_{};        // awake_ when its own counter moved last
  Duration data_moved_{};   // awake_ when it was last seen that data moves anywhere
  Duration paused_{};       // its latest long pause; zero: none
  Duration pause_ended_{};  // awake_ at its end
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_LIVENESS_JUDGE_H_
