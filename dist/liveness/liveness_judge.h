// LivenessJudge: which rank hangs, judged by what the ranks report about themselves. It has no
// thread, socket or clock of its own: it is told what has arrived and what time it is, so that a
// test can play any story.
//
// When one rank of a synchronous world hangs, all others soon wait: for their neighbour, which
// waits for the next. A rank that only measures how long it has waited blames its neighbour.
//
//     rank 0  -- waits for -->  rank 1  -- waits for -->  rank 2  backward of step 17, for 10 s
//     exchange, step 17         exchange, step 17         ^ hangs
//
// So each rank judges all others by what they report:
//
//   no rank hears a rank for silence_limit           stopped, or cut off
//   its counter has not moved for its stall limit,   alive, but its training thread hangs
//     and it is not in an exchange
//   nothing arrives from any rank (of two or more)   this rank is cut off
//   a rank lives, but nothing of it arrives here     the network between the two is broken
//
// A rank is heard when a later beat of it is reported, by itself or by a third rank (heartbeat.h),
// or when bytes of it arrive. On a link that is full of data heartbeats get lost and late; hence
// third ranks, and hence a rank that lives may be out of reach for three times as long while data
// moves anywhere. A rank that has not sent its first beat may still be waiting for its connections
// to others; it has begin_limit for that, within which it finds out itself which rank it cannot
// reach.
//
// The stall limit of a rank is stall_limit, or 20 of its steps, whichever is longer; long_phase in
// phases that may be long, and before its first step has ended, when its pace is not known. Ranks
// that are close to a limit when another reaches it are named together with it.
//
// This rank itself may have been stopped, or had no processor. Then it has not heard the others
// because it did not listen: at most one interval counts between two calls of Wake. If the pause
// was long, the others may have given up this rank. That alone does not end it (all may have been
// stopped, with their machine, and then nothing is wrong), but if the world ends within
// silence_limit after it woke up, that is the reason (PauseVerdict).
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

// Of a rank that has reached a limit.
struct Accusation {
  enum class Kind { kSilent, kHangs, kOutOfReach };

  int rank = 0;
  Kind kind = Kind::kSilent;
  Status status;  // names it
};

struct Verdict {
  Status status;              // names the culprits
  std::vector<int> culprits;  // none: another rank ended the world
  bool cut_off = false;       // this rank is the culprit: it hears no other
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
  // DataLoss if it does not continue the previous one. An older one is ignored.
  Status OnHeartbeat(int peer, const Heartbeat& heartbeat);
  // Something of this peer has come the way that data comes: a heartbeat, or a piece of a message.
  void OnArrival(int peer) { ranks_[peer].heard = ranks_[peer].arrived = awake_; }

  std::optional<Verdict> Judge() const;

  // ---- of a world that outlives its losses: for LossJudge
  // Nothing is expected of this rank any more, and this rank says so.
  void OnLost(int rank) { ranks_[rank].lost = true; }
  bool IsLost(int rank) const { return ranks_[rank].lost; }
  bool HasEnded(int rank) const { return ranks_[rank].told.last; }  // in good order
  // This rank says the same of one that it has not lost: let others decide.
  void Complain(int rank, bool complain) { ranks_[rank].complaint = complain; }
  // Whether it says so of `about`.
  bool SaysLost(int rank, int about) const {
    const std::vector<uint32_t>& beats = ranks_[rank].told.beats;
    return !beats.empty() && beats[about] == kLostBeat;
  }
  std::vector<Accusation> Accuse() const { return Accuse(Duration::zero()); }
  // If this rank hears none of two or more others, for as long as it takes.
  std::optional<Verdict> CutOffVerdict() const;
  // If this rank had been stopped.
  std::optional<Verdict> PauseVerdict() const;
  int rank() const { return rank_; }
  int world_size() const { return static_cast<int>(ranks_.size()); }
  const LivenessLimits& limits() const { return limits_; }
  std::string Describe(int rank) const { return describe_(rank); }
  std::chrono::steady_clock::duration awake() const { return awake_; }
  std::chrono::steady_clock::duration heard(int rank) const { return ranks_[rank].heard; }

  // ---- about this rank, and about the end
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
    bool lost = false, complaint = false;
  };

  // Heartbeats come at intervals: what was cut at one moment was heard at several.
  Duration Slack() const { return limits_.interval * 3 / 2; }
  bool Expected(int rank) const {
    return rank != rank_ && !ranks_[rank].told.last && !ranks_[rank].lost;
  }
  std::vector<Accusation> Accuse(Duration slack) const;
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
  bool HearsNoOther() const;
  Verdict CutOff() const;

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
