#include "apps/trainer/update/roll_call.h"

#include "core/stop_signal.h"

namespace ringtail {

void RollCall::Begin(const RankMetrics& own, double gradient_squares) {
  all_.assign(world_->size(), {});
  all_[world_->rank()] = {
      .stop_signal = StopSignal(), .gradient_squares = gradient_squares, .metrics = own};
  if (world_->alone()) return;
  job_ = world_->gradient_thread()->Submit([this](Communicator* ranks) {
    return ranks->AllGather(std::as_writable_bytes(std::span(all_)));
  });
}

StatusOr<std::span<const RankStep>> RollCall::Finish() {
  if (!world_->alone()) {
    RT_RETURN_IF_ERROR(world_->WaitForGradients(job_));
    // They are none of the next step's exchange.
    waited_seconds_ = world_->gradient_thread()->TakeTimes().exposed_seconds;
  }
  for (const RankStep& rank : all_) {
    if (agreed_signal_ == 0) agreed_signal_ = static_cast<int>(rank.stop_signal);
  }
  return std::span<const RankStep>(all_);
}

int RollCall::stop_signal() const { return world_->alone() ? StopSignal() : agreed_signal_; }

}  // namespace ringtail
