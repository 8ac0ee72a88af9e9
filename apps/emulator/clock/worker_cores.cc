#include "apps/emulator/clock/worker_cores.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ringtail {
namespace {

int64_t Rounded(double ns) { return std::llround(ns); }

}  // namespace

WorkerCores::WorkerCores(EventQueue* queue) : queue_(queue) { set_cores(1); }

void WorkerCores::set_cores(double cores) {
  cores_ = cores;
  share_ = ShareCores(cores, std::min(1.0, cores));
}

WorkerCores::Use* WorkerCores::UseOf(int worker) {
  const auto index = static_cast<size_t>(worker);
  if (uses_.size() <= index) uses_.resize(index + 1);
  return &uses_[index];
}

void WorkerCores::Computes(int worker, int64_t until_ns) { UseOf(worker)->until_ns = until_ns; }

int64_t WorkerCores::ComputesUntil(int worker) const {
  const auto index = static_cast<size_t>(worker);
  const int64_t now_ns = queue_->now_ns();
  return index < uses_.size() ? std::max(now_ns, uses_[index].until_ns) : now_ns;
}

void WorkerCores::Take(int worker, double seconds) {
  if (ComputesUntil(worker) == queue_->now_ns()) return;
  Use* const use = UseOf(worker);
  use->missing_ns = After(use->missing_ns, seconds);
}

// In pieces, each until the worker's computing ends: what it computes next is not known before.
void WorkerCores::WorkBeside(int worker, int64_t alone_ns, EventQueue::Action done) {
  const int64_t now_ns = queue_->now_ns(), beside_ns = ComputesUntil(worker) - now_ns;
  if (beside_ns == 0) return queue_->Schedule(now_ns + alone_ns, worker, std::move(done));
  const double speed = share_.communication;
  const int64_t shared_ns = std::min(beside_ns, Rounded(static_cast<double>(alone_ns) / speed));
  UseOf(worker)->missing_ns += Rounded(static_cast<double>(shared_ns) * (1 - share_.compute));
  const int64_t left_ns = alone_ns - Rounded(static_cast<double>(shared_ns) * speed);
  if (left_ns <= 0) return queue_->Schedule(now_ns + shared_ns, worker, std::move(done));
  queue_->Schedule(now_ns + shared_ns, worker, [this, worker, left_ns, done = std::move(done)] {
    WorkBeside(worker, left_ns, done);
    return OkStatus();
  });
}

int64_t WorkerCores::TakeMissingNs(int worker) {
  return std::exchange(UseOf(worker)->missing_ns, 0);
}

}  // namespace ringtail
