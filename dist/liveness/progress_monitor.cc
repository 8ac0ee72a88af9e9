#include "dist/liveness/progress_monitor.h"

#include <fmt/format.h>
#include <time.h>

#include <utility>

#include "core/logging.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWakesPerInterval = 4;
// Heartbeats where data goes, which are to show only that the way is open.
constexpr int kIntervalsPerDataBeat = 2;
// A monitor whose world has ended finishes at once; this limit is for machines that do not get to
// it.
constexpr std::chrono::seconds kExplainLimit{10};

// For the judge. It runs on while the machine sleeps, which steady_clock does not: a lid that was
// closed is a pause, too.
LivenessJudge::TimePoint TimeWithSleep() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return LivenessJudge::TimePoint(std::chrono::seconds(time.tv_sec) +
                                  std::chrono::nanoseconds(time.tv_nsec));
}

MonitorOptions Completed(MonitorOptions options) {
  if (!options.describe) options.describe = [](int rank) { return fmt::format("rank {}", rank); };
  if (!options.on_notice) options.on_notice = [](const std::string& text) { LogWarning(text); };
  if (!options.on_end) options.on_end = [](const Verdict&) {};
  return options;
}

}  // namespace

ProgressMonitor::ProgressMonitor(Transport* transport, MonitorOptions options)
    : transport_(transport),
      options_(Completed(std::move(options))),
      arrived_(transport->world_size()),
      exchange_(transport),
      judge_(transport->rank(), transport->world_size(), options_.limits, options_.describe,
             TimeWithSleep()),
      stragglers_(transport->world_size(), options_.slow_for, options_.describe),
      next_beat_(Clock::now()) {
  // Alone, there is no rank to tell and none to end.
  if (transport->world_size() > 1) thread_ = std::thread([this] { Run(); });
}

ProgressMonitor::~ProgressMonitor() {
  if (!thread_.joinable()) return;
  transport_->Abort({StatusCode::kUnavailable,
                     fmt::format("{} leaves early", options_.describe(transport_->rank()))});
  thread_.join();
}

Status ProgressMonitor::Stop() {
  if (thread_.joinable()) {
    progress_.Enter(Phase::kExchange);
    stopping_ = true;
    exchange_.Interrupt();
    thread_.join();
  }
  MutexLock lock(&mutex_);
  return verdict_ ? verdict_->status : Status();
}

// The flag first: until the transport is tolerant, too, the first loss ends it anyway.
Status ProgressMonitor::TolerateLosses(std::shared_ptr<PeerLossObserver> observer) {
  inbox_ = std::make_shared<LossInbox>(std::move(observer));
  tolerant_ = true;
  Status status = transport_->TolerateLosses(inbox_);
  if (!status.ok()) tolerant_ = false;
  return status;
}

Status ProgressMonitor::Explain(const Status& error) {
  MutexLock lock(&mutex_);
  const Deadline deadline = Clock::now() + kExplainLimit;
  while (thread_.joinable() && !finished_) {
    if (!finished_changed_.WaitUntil(&mutex_, deadline)) break;
  }
  return verdict_ && !verdict_->culprits.empty() ? verdict_->status : error;
}

Status ProgressMonitor::Check() const {
  MutexLock lock(&mutex_);
  return verdict_ ? verdict_->status : Status();
}

bool ProgressMonitor::cut_off() const {
  MutexLock lock(&mutex_);
  return verdict_ && verdict_->cut_off;
}

void ProgressMonitor::Run() {
  SetThreadName("rt-liveness");
  while (RunOnce()) {
  }
  Finish();
}

bool ProgressMonitor::RunOnce() {
  const Deadline now = Clock::now();
  judge_.Wake(TimeWithSleep());
  const uint64_t moved = WatchTraffic();
  // In this order: what is told as the last heartbeat comes after all that was done before Stop.
  const bool last = stopping_;
  // Events may come a thousand times as often, and with N ranks a look takes rank 0 N^2.
  if (last || now >= next_look_ || now >= next_beat_) LookAtOwn(now, moved, last);
  moved_ = judge_.moved();
  if (exchange_.Done() && LossesAreJudged()) return false;
  if (!TakeEvents(next_look_)) return false;
  if (!(tolerant_ ? JudgeLosses() : Judge())) return false;
  return !StopTookTooLong();
}

void ProgressMonitor::LookAtOwn(Deadline now, uint64_t moved, bool last) {
  Heartbeat own = judge_.OnOwnProgress(progress_.Read(), step_times_.Get(), moved);
  own.last = last;
  if (last) LimitStop(now);
  if (last || now >= next_beat_) {
    exchange_.Send(HeartbeatLane::kUrgent, own);
    if (last || beats_++ % kIntervalsPerDataBeat == 0) exchange_.Send(HeartbeatLane::kData, own);
    next_beat_ = now + options_.limits.interval;
  }
  if (transport_->rank() == 0 && !tolerant_) WatchStragglers();
  next_look_ = now + options_.limits.interval / kWakesPerInterval;
}

bool ProgressMonitor::Judge() {
  const std::optional<Verdict> verdict = judge_.Judge();
  if (verdict) End(*verdict);
  return !verdict;
}

bool ProgressMonitor::JudgeLosses() {
  for (const auto& [peer, cause] : inbox_->Take()) {
    if (!OnLost(peer, cause)) return false;
  }
  // Otherwise the inbox has it soon.
  if (const Status end = transport_->EndCause(); !end.ok() && !LossesAreJudged()) {
    End({.status = end, .culprits = {}});
    return false;
  }
  const LossVerdict verdict = losses_.Judge();
  if (verdict.end) {
    End(*verdict.end);
    return false;
  }
  for (const auto& [rank, cause] : verdict.lost) {
    transport_->GiveUp(rank, cause);
    if (!OnLost(rank, cause)) return false;
  }
  return true;
}

bool ProgressMonitor::LossesAreJudged() const {
  for (int peer = 0; peer < transport_->world_size(); ++peer) {
    if (peer != transport_->rank() && exchange_.Lost(peer) && !judge_.IsLost(peer)) return false;
  }
  return true;
}

// False if that is the end.
bool ProgressMonitor::OnLost(int peer, const Status& cause) {
  if (judge_.IsLost(peer)) return true;
  const std::optional<Verdict> end = losses_.OnLost(peer, cause);
  if (end) {
    End(*end);
    return false;
  }
  next_beat_ = Deadline();  // the others are told at once
  if (transport_->rank() == 0 && !judge_.HasEnded(peer)) {
    options_.on_notice(fmt::format("{}; the others continue without it", cause.message()));
  }
  return true;
}

// What has come since the last look is told to the judge. Returns what this rank has moved so far.
uint64_t ProgressMonitor::WatchTraffic() {
  uint64_t moved = 0;
  for (int peer = 0; peer < transport_->world_size(); ++peer) {
    if (peer == transport_->rank()) continue;
    const Traffic traffic = transport_->traffic(peer);
    if (std::exchange(arrived_[peer], traffic.arrived) != traffic.arrived) judge_.OnArrival(peer);
    moved += traffic.sent + traffic.received;
  }
  return moved;
}

// Waits for one event, and takes all that are there. False if the world has ended.
bool ProgressMonitor::TakeEvents(Deadline until) {
  HeartbeatExchange::Event event;
  for (; exchange_.Next(&event, until); until = Deadline()) {
    judge_.Wake(TimeWithSleep());  // if this process was stopped, then most likely while it waited
    if (!event.lost.ok()) {
      if (tolerant_ && transport_->EndCause().ok()) continue;  // the inbox has it, or will
      End(judge_.OwnFault().value_or(Verdict{.status = event.lost, .culprits = {}}));
      return false;
    }
    Status status = event.heartbeat.status().Annotate(
        fmt::format("{} sent a heartbeat that cannot be read", options_.describe(event.peer)));
    if (status.ok()) status = judge_.OnHeartbeat(event.peer, *event.heartbeat);
    if (status.ok()) continue;
    if (tolerant_) {
      transport_->GiveUp(event.peer, status);
      if (!OnLost(event.peer, status)) return false;
      continue;
    }
    End({.status = status, .culprits = {event.peer}});
    return false;
  }
  return true;
}

// In a tolerant world the others may have much to do yet.
void ProgressMonitor::LimitStop(Deadline now) {
  if (stop_deadline_ && (!tolerant_ || moved_ == moved_at_stop_)) return;
  moved_at_stop_ = moved_;
  stop_deadline_ = now + StopLimit();
}

bool ProgressMonitor::StopTookTooLong() {
  if (!stop_deadline_ || Clock::now() < *stop_deadline_ || exchange_.Done()) return false;
  End(judge_.NotEnded(exchange_.Open(), StopLimit()));
  return true;
}

void ProgressMonitor::WatchStragglers() {
  std::vector<uint64_t> compute_us;
  compute_us.reserve(transport_->world_size());
  for (int rank = 0; rank < transport_->world_size(); ++rank) {
    compute_us.push_back(judge_.compute_us(rank));
  }
  for (const std::string& notice : stragglers_.Update(compute_us, Clock::now())) {
    options_.on_notice(notice);
  }
}

void ProgressMonitor::End(const Verdict& verdict) {
  {
    MutexLock lock(&mutex_);
    verdict_ = verdict;
  }
  transport_->Abort(verdict.status);
}

void ProgressMonitor::Finish() {
  std::optional<Verdict> verdict;
  {
    MutexLock lock(&mutex_);
    finished_ = true;
    verdict = verdict_;
    finished_changed_.NotifyAll();
  }
  if (verdict) options_.on_end(*verdict);
}

}  // namespace ringtail
