#include "dist/planner/overlap.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "dist/planner/core_share.h"

namespace ringtail {
namespace {

// The two clocks, moved on from event to event.
class Fluid {
 public:
  Fluid(double compute_seconds, double cores, std::span<const CommunicationJob> jobs)
      : compute_seconds_(compute_seconds), cores_(cores), jobs_(jobs), possible_(compute_seconds) {
    BeginWork();
  }

  OverlapTimes Run() {
    while (computed_ < compute_seconds_ || job_ < jobs_.size()) Advance();
    times_.end = now_;
    times_.unlocked = computed_ - compute_seconds_;
    return times_;
  }

 private:
  bool computing() const { return computed_ < possible_; }
  bool communicating() const { return job_ < jobs_.size() && jobs_[job_].ready <= computed_; }
  const CommunicationWork& work() const { return jobs_[job_].work[piece_]; }

  // To the next piece, over jobs without any.
  void BeginWork() {
    while (job_ < jobs_.size() && piece_ == jobs_[job_].work.size()) {
      possible_ += jobs_[job_].unlocks;
      ++job_;
      piece_ = 0;
    }
    if (job_ < jobs_.size()) left_ = work().seconds;
  }

  void Advance() {
    const bool sends = communicating();
    RT_CHECK(sends || computing(), "a job is ready when the computation ends");
    CoreShare share;
    if (sends && computing()) {
      share = ShareCores(cores_, work().cores * work().beside);
      share.communication *= work().beside;
    }
    // Until the computation ends, or what was unlocked until now; or, if it waits for that, the
    // next job is ready.
    double goal = computed_ < compute_seconds_ ? compute_seconds_ : possible_;
    if (!sends && job_ < jobs_.size()) goal = jobs_[job_].ready;
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const double compute_time =
        computing() && share.compute > 0 ? (goal - computed_) / share.compute : kNever;
    const double work_time = sends ? left_ / share.communication : kNever;
    const double time = std::min(compute_time, work_time);
    now_ += time;
    if (sends && !computing()) {
      (work().coding ? times_.exposed_coding : times_.exposed_wire) += time;
    }
    if (computing())
      MoveComputation(compute_time <= work_time ? goal : computed_ + time * share.compute);
    if (!sends) return;
    if (work_time <= compute_time) {
      ++piece_;
      BeginWork();
    } else {
      left_ -= time * share.communication;
    }
  }

  void MoveComputation(double to) {
    const bool before = computed_ < compute_seconds_;
    computed_ = std::min(to, possible_);
    if (before && computed_ >= compute_seconds_) times_.compute_end = now_;
  }

  const double compute_seconds_, cores_;
  const std::span<const CommunicationJob> jobs_;
  double possible_;  // seconds of computation: with what is unlocked
  OverlapTimes times_;
  double now_ = 0, computed_ = 0, left_ = 0;
  size_t job_ = 0, piece_ = 0;
};

}  // namespace

CommunicationWork CommunicationWork::Collective(double wire_seconds, double cpu_seconds,
                                                double cores) {
  const double seconds = std::max(wire_seconds, cpu_seconds / cores);
  return {.seconds = seconds, .cores = seconds > 0 ? cpu_seconds / seconds : 0};
}

CommunicationWork CommunicationWork::Coding(double cpu_seconds, double cores) {
  const double used = std::min(1.0, cores);
  return {.coding = true, .seconds = cpu_seconds / used, .cores = used};
}

double CommunicationJob::seconds() const {
  double sum = 0;
  for (const CommunicationWork& piece : work) sum += piece.seconds;
  return sum;
}

OverlapTimes Overlap(double compute_seconds, double cores, std::span<const CommunicationJob> jobs) {
  for (const CommunicationJob& job : jobs) {
    RT_CHECK(job.ready <= compute_seconds, "a job is ready when the computation ends");
  }
  return Fluid(compute_seconds, cores, jobs).Run();
}

}  // namespace ringtail
