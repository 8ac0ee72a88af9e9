#include "apps/trainer/update/roll_call.h"

#include "core/stop_signal.h"

namespace ringtail {

StatusOr<std::vector<RankStep>> RollCall::Hold(const RankMetrics& own, double gradient_squares) {
  RT_ASSIGN_OR_RETURN(
      std::vector<RankStep> all,
      world_->Gather(RankStep{
          .stop_signal = StopSignal(), .gradient_squares = gradient_squares, .metrics = own}));
  for (const RankStep& rank : all) {
    if (agreed_signal_ == 0) agreed_signal_ = static_cast<int>(rank.stop_signal);
  }
  return all;
}

int RollCall::stop_signal() const { return world_->alone() ? StopSignal() : agreed_signal_; }

}  // namespace ringtail
