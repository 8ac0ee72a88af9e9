#include "core/machine/core_sharing.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace ringtail {

void CoreSharing::Update(const Use& use) {
  // One time slice of another thread does not make a core shared: hence an average with decay.
  const double kept = std::exp(-use.elapsed / kMemory);
  if (use.elapsed > 0) recent_delay_ += (1 - kept) * (use.delay / use.elapsed - recent_delay_);
  calm_ = recent_delay_ > kDelayed ? 0 : calm_ + use.elapsed;
  delayed_ = calm_ < kCalm;

  window_.elapsed += use.elapsed;
  window_.delay += use.delay;
  window_.others += use.others;
  window_.held += use.held;
  if (window_.elapsed < kNoticeAfter) return;
  const Use whole = std::exchange(window_, {});
  const double share = whole.others / (whole.elapsed * cores_);
  const bool slower = whole.delay > kDelayed * whole.elapsed;
  if (told_ || share < kNoticeShare || !slower) return;
  told_ = true;
  notice_ = Reason(whole) + "; training is slower for it, but nothing else is wrong";
}

std::string CoreSharing::Reason(const Use& whole) const {
  if (whole.held > kDelayed * whole.elapsed) {
    return fmt::format(
        "this process may use {:.3g} cores (CPU quota of its control group), which has stopped its "
        "threads for {:.1f} s, summed over the cores, in the last {:.0f} s",
        quota_, whole.held, whole.elapsed);
  }
  return fmt::format(
      "the cores are shared: {:.0f} % of their time went to other programs in the last {:.0f} s",
      100 * whole.others / (whole.elapsed * cores_), whole.elapsed);
}

std::optional<std::string> CoreSharing::Notice() { return std::exchange(notice_, {}); }

}  // namespace ringtail
