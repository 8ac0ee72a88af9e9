#include "apps/trainer/update/bf16_agreement.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/logging.h"
#include "core/text/counted.h"
#include "dist/config_check.h"
#include "optim/optimizer.h"

namespace ringtail {

StatusOr<bool> AgreeOnBf16Products(bool fast_here, const RunConfig& config, TrainingWorld* world) {
  if (!Optimizer::TakesBf16Products(config.optim()) || !NeedsSameNumerics(config.dist())) {
    return fast_here;
  }
  RT_ASSIGN_OR_RETURN(const std::vector<uint8_t> fast,
                      world->Gather(static_cast<uint8_t>(fast_here)));
  const auto slow = std::ranges::find(fast, 0);
  if (slow == fast.end()) return true;
  const auto others = std::ranges::count(fast, 1);
  if (others > 0 && world->leads()) {
    LogInfo(fmt::format(
        "optim.muon.matrices: f32 on all ranks, as products of bf16 are not fast on "
        "{}, and all make the same update; {} could have taken bf16",
        world->Describe(static_cast<int>(slow - fast.begin())), Counted(others, "rank")));
  }
  return false;
}

}  // namespace ringtail
