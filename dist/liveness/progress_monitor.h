// ProgressMonitor: every rank tells every other once a second how far its training has come, and
// the rank that hangs is named on all of them (which one it is: liveness_judge.h).
//
//   ProgressMonitor monitor(world.transport.get(), {.describe = ...});    right after joining
//   monitor.progress().Enter(Phase::kForward); ...                        progress.h
//   monitor.RecordStep(compute_seconds, step_seconds);                    after each step
//   status = communicator.AllReduce(...);
//   if (!status.ok()) return monitor.Explain(status);
//   return monitor.Stop();                                                on every rank, at the end
//
// A verdict ends the world (Transport::Abort), so that every pending operation of every rank
// completes with the sentence that names the culprits. Rank 0 also says which rank is slow
// (straggler_watch.h).
//
// After TolerateLosses, only the culprits are lost (loss_judge.h), and the others continue:
//
//   RT_RETURN_IF_ERROR(monitor.TolerateLosses(observer));                when nothing needs all
//   rank 2 dies, is stopped, hangs    observer->OnPeerLost(2, cause) on all that are left
//   rank 2, if it wakes up again      ends; on_end: "rank 2, this process, was stopped for 12.0 s"
//   rank 0 is lost                    the end of all
//
// Threads: one, "rt-liveness", wakes four times in an interval, and for every burst of heartbeats.
// Thread-safety: RecordStep, Stop and Explain from one thread, progress() as it says, moved from any.
// Cost: 64 bytes and 4 for each rank, to and from every rank in each interval; half as much on top
// of that where no data goes.
#ifndef RINGTAIL_DIST_LIVENESS_PROGRESS_MONITOR_H_
#define RINGTAIL_DIST_LIVENESS_PROGRESS_MONITOR_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/liveness/heartbeat_exchange.h"
#include "dist/liveness/liveness_judge.h"
#include "dist/liveness/loss_inbox.h"
#include "dist/liveness/loss_judge.h"
#include "dist/liveness/progress.h"
#include "dist/liveness/step_times.h"
#include "dist/liveness/straggler_watch.h"
#include "dist/transport/transport.h"

namespace ringtail {

struct MonitorOptions {
  LivenessLimits limits;
  // How long Stop waits for the others to stop, too. In a world that tolerates losses it waits for
  // as long as anything moves, and then for limits.long_phase.
  std::chrono::milliseconds stop_timeout{30'000};
  // How long a rank must be slow before it is reported.
  std::chrono::milliseconds slow_for = StragglerWatch::kLasting;
  RankDescriber describe;  // none: "rank 3"
  // Gets notices of slow ranks; none: a warning in the log.
  std::function<void(const std::string& notice)> on_notice;
  // Called by the monitor's thread when the world has ended before Stop has. A training thread that
  // hangs does not notice: this is the place to end the process nevertheless.
  std::function<void(const Verdict& verdict)> on_end;
};

class ProgressMonitor {
 public:
  // From now on all ranks are expected to be heard, this one included. `transport` must outlive the
  // monitor.
  ProgressMonitor(Transport* transport, MonitorOptions options);
  // Without Stop, it ends the world, with no better reason than that this rank leaves: a rank that
  // has one aborts the transport first.
  ~ProgressMonitor();
  ProgressMonitor(const ProgressMonitor&) = delete;
  ProgressMonitor& operator=(const ProgressMonitor&) = delete;

  Progress& progress() { return progress_; }
  void RecordStep(double compute_seconds, double step_seconds) {
    step_times_.Record(compute_seconds, step_seconds);
  }
  // Grows while data moves between any two ranks of the world, or any rank's training does. Seen
  // with the delay of a heartbeat.
  uint64_t moved() const { return moved_; }

  // From now on the loss of a rank is not the end, unless it is rank 0's. Transport::TolerateLosses
  // tells `observer`, of rank 0 too, and says what it returns. From the thread of Stop.
  Status TolerateLosses(std::shared_ptr<PeerLossObserver> observer);

  // Once this rank has finished: says so, and waits until all have said so. Afterwards nothing is
  // pending on the transport. An error says how the world has ended instead.
  Status Stop();

  // `error` is the status of an operation of the world. Returns a better reason for the end of the
  // world if this rank knows one: its own verdict, or that it was stopped for a while; otherwise
  // `error`.
  Status Explain(const Status& error) RT_EXCLUDES(mutex_);

  // OK while the world lives. A thread that exchanges nothing hears of its end here.
  Status Check() const RT_EXCLUDES(mutex_);

  // Whether this rank has found itself cut off from all others (of two or more). They may continue
  // without it, or be restarted: it must not write what they share.
  bool cut_off() const RT_EXCLUDES(mutex_);

 private:
  void Run();  // body of thread_
  // False once the monitor has finished.
  bool RunOnce() RT_EXCLUDES(mutex_);
  void LookAtOwn(Deadline now, uint64_t moved, bool last);
  bool TakeEvents(Deadline until) RT_EXCLUDES(mutex_);
  std::chrono::milliseconds StopLimit() const {
    return tolerant_ ? options_.limits.long_phase : options_.stop_timeout;
  }
  void LimitStop(Deadline now);
  bool StopTookTooLong();
  bool OnLost(int peer, const Status& cause) RT_EXCLUDES(mutex_);
  bool Judge() RT_EXCLUDES(mutex_);
  bool JudgeLosses() RT_EXCLUDES(mutex_);
  bool LossesAreJudged() const;
  uint64_t WatchTraffic();
  void WatchStragglers();
  void End(const Verdict& verdict) RT_EXCLUDES(mutex_);
  void Finish() RT_EXCLUDES(mutex_);

  Transport* const transport_;
  const MonitorOptions options_;
  Progress progress_;
  StepTimes step_times_;
  std::atomic<uint64_t> moved_{0};

  // Used by thread_ only.
  std::vector<uint64_t> arrived_;  // Traffic::arrived, by rank, when the monitor looked last
  HeartbeatExchange exchange_;
  LivenessJudge judge_;
  LossJudge losses_{&judge_};
  StragglerWatch stragglers_;
  Deadline next_beat_;
  Deadline next_look_;  // at this rank's own progress, and at stragglers
  uint64_t beats_ = 0;
  std::optional<Deadline> stop_deadline_;  // none: not stopping
  uint64_t moved_at_stop_ = 0;             // moved_, when stop_deadline_ was set

  std::atomic<bool> stopping_{false};
  std::atomic<bool> tolerant_{false};
  std::shared_ptr<LossInbox> inbox_;  // set before tolerant_
  mutable Mutex mutex_;
  ConditionVariable finished_changed_;
  bool finished_ RT_GUARDED_BY(mutex_) = false;  // thread_ has finished
  std::optional<Verdict> verdict_ RT_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_PROGRESS_MONITOR_H_
