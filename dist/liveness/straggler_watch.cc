#include "dist/liveness/straggler_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringtail {
namespace {

constexpr double kSlow = 1.5, kNoLongerSlow = 1.25;

double Milliseconds(uint64_t us) { return static_cast<double>(us) / 1e3; }

// The median of all but `rank`; of two in the middle the quicker. 0: nobody else is known.
uint64_t MedianOfOthers(std::span<const uint64_t> compute_us, size_t rank) {
  std::vector<uint64_t> others;
  for (size_t i = 0; i < compute_us.size(); ++i) {
    if (i != rank && compute_us[i] > 0) others.push_back(compute_us[i]);
  }
  if (others.empty()) return 0;
  const auto middle = others.begin() + static_cast<ptrdiff_t>((others.size() - 1) / 2);
  std::nth_element(others.begin(), middle, others.end());
  return *middle;
}

}  // namespace

StragglerWatch::StragglerWatch(int world_size, RankDescriber describe)
    : describe_(std::move(describe)), slow_(world_size) {}

std::vector<std::string> StragglerWatch::Update(std::span<const uint64_t> compute_us) {
  std::vector<std::string> notices;
  for (size_t rank = 0; rank < slow_.size(); ++rank) {
    const uint64_t others = MedianOfOthers(compute_us, rank);
    if (others == 0 || compute_us[rank] == 0) continue;
    const double limit = slow_[rank] ? kNoLongerSlow : kSlow;
    const bool slow = static_cast<double>(compute_us[rank]) > limit * static_cast<double>(others);
    if (slow == slow_[rank]) continue;
    slow_[rank] = slow;
    notices.push_back(fmt::format("{} is {}slow: {:.1f} ms per step, the others {:.1f} ms",
                                  describe_(static_cast<int>(rank)), slow ? "" : "no longer ",
                                  Milliseconds(compute_us[rank]), Milliseconds(others)));
  }
  return notices;
}

}  // namespace ringtail
