#include "dist/liveness/straggler_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringtail {
namespace {

constexpr double kSlow = 1.5, kNoLongerSlow = 1.25;          // times the others
constexpr double kSlowUs = 10'000, kNoLongerSlowUs = 5'000;  // more than the others

double Milliseconds(uint64_t us) { return static_cast<double>(us) / 1e3; }

// The median of all but `rank`; the shorter of two in the middle. 0: no other is known.
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

StragglerWatch::StragglerWatch(int world_size, std::chrono::milliseconds lasting,
                               RankDescriber describe)
    : lasting_(lasting), describe_(std::move(describe)), ranks_(world_size) {}

std::vector<std::string> StragglerWatch::Update(std::span<const uint64_t> compute_us,
                                                TimePoint now) {
  std::vector<std::string> notices;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const uint64_t others_us = MedianOfOthers(compute_us, i);
    if (others_us == 0 || compute_us[i] == 0) continue;
    Rank& rank = ranks_[i];
    const auto own = static_cast<double>(compute_us[i]), others = static_cast<double>(others_us);
    const bool slow = own > (rank.slow ? kNoLongerSlow : kSlow) * others &&
                      own > others + (rank.slow ? kNoLongerSlowUs : kSlowUs);
    if (slow == rank.slow) {
      rank.other.reset();
      continue;
    }
    if (!rank.other) rank.other = now;
    if (now - *rank.other < lasting_) continue;
    rank = {.slow = slow, .other = {}};
    notices.push_back(Notice(static_cast<int>(i), compute_us[i], others_us));
  }
  return notices;
}

std::string StragglerWatch::Notice(int rank, uint64_t own_us, uint64_t others_us) const {
  const std::string times = fmt::format("{:.1f} ms per step, the others {:.1f} ms",
                                        Milliseconds(own_us), Milliseconds(others_us));
  if (!ranks_[rank].slow) {
    return fmt::format("{} is no longer slow: {}", describe_(rank), times);
  }
  return fmt::format(
      "{} is slow, and the others wait for it: {}; see what else runs on its host, or give it "
      "fewer "
      "images (--local-batch)",
      describe_(rank), times);
}

}  // namespace ringtail
