// Overlap: a rank's computation and its communication thread beside each other, as a fluid: both
// progress at rates that change only where one of them begins or ends something.
//
//   compute   |=========.......=================|..0..|..1..|     . slowed: cores are shared
//   rt-comm          r0>[ job 0 ][ job 1 ]   r2>[       job 2       ]
//                                                    exposed |------|
//
// Jobs run one after another, in their order; job k begins when the computation has reached its
// `ready` and job k-1 is over. A job is a list of pieces of work: coding on the thread itself, or a
// collective, which uses cores as well (core_share.h). What a job `unlocks`, as an optimizer's work
// on gradients that have arrived, is computed after everything else, while later jobs run.
// Between the bounds  max(compute, jobs) <= end <= compute + jobs, where nothing is unlocked.
// Cost: a few operations per piece and ready time. Thread-safety: a pure function.
#ifndef RINGTAIL_DIST_PLANNER_OVERLAP_H_
#define RINGTAIL_DIST_PLANNER_OVERLAP_H_

#include <span>
#include <vector>

namespace ringtail {

// Work of the communication thread, on a rank that computes nothing meanwhile.
struct CommunicationWork {
  bool coding = false;  // encoding or decoding; else a collective
  double seconds = 0;   // > 0
  double cores = 0;     // used during these seconds; at most those of the rank
  // Of its speed, what is left while the rank computes, whatever cores there are; >0 .. 1: messages
  // wait for threads that wake late (PlannerFacts::wake_delay_s).
  double beside = 1;

  // A collective that takes `wire_seconds` and needs `cpu_seconds` of a rank's `cores`: longer where
  // the cores are too slow for the wire.
  static CommunicationWork Collective(double wire_seconds, double cpu_seconds, double cores);
  // `cpu_seconds` of one thread.
  static CommunicationWork Coding(double cpu_seconds, double cores);
};

struct CommunicationJob {
  double ready = 0;  // seconds of computation that come before, in any order of jobs
  std::vector<CommunicationWork> work;
  double unlocks = 0;  // seconds of computation that become possible when the job is over

  void Add(const CommunicationWork& next) {
    if (next.seconds > 0) work.push_back(next);
  }
  double seconds() const;
};

struct OverlapTimes {
  double compute_end = 0;  // at least the seconds of computation: the difference is contention
  double end = 0;          // of this and of the jobs
  double exposed_wire = 0, exposed_coding = 0;
  double unlocked = 0;  // seconds of unlocked computation that were done by `end`
  // Seconds that pass beside both: what sharing cores has cost.
  double contention(double compute_seconds) const {
    return end - exposed_wire - exposed_coding - unlocked - compute_seconds;
  }
};

OverlapTimes Overlap(double compute_seconds, double cores, std::span<const CommunicationJob> jobs);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_OVERLAP_H_
