#include "data/bad_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace ringtail {
namespace {

constexpr size_t kNamedInSummary = 5;

// `fraction` rounded up to two decimals (or as many as it takes to keep it near).
double EnoughFraction(double fraction) {
  double steps = 100;
  while (std::ceil(fraction * steps) > 2 * fraction * steps) steps *= 10;
  return std::ceil(fraction * steps) / steps;
}

}  // namespace

Status CheckBadImages(const std::vector<BadImage>& bad, int64_t total,
                      const BadImagesConfig& config) {
  if (bad.empty()) return OkStatus();
  if (config.policy() == BadImagesConfig::FAIL) {
    return DataLoss(
        fmt::format("{} {}; remove it, or continue without it: --set data.bad_images.policy=SKIP",
                    bad.front().key, bad.front().reason));
  }
  const auto count = static_cast<int64_t>(bad.size());
  if (count < total &&
      static_cast<double>(count) <= config.max_fraction() * static_cast<double>(total)) {
    return OkStatus();
  }
  std::string named;
  for (size_t i = 0; i < std::min(bad.size(), kNamedInSummary); ++i) {
    named += fmt::format("{}{} {}", i == 0 ? "" : ", ", bad[i].key, bad[i].reason);
  }
  if (bad.size() > kNamedInSummary) named += ", ...";
  if (count >= total) {
    const std::string which =
        total == 1 ? "the only image cannot" : fmt::format("none of the {} images can", total);
    return DataLoss(fmt::format("{} be used ({})", which, named));
  }
  return DataLoss(fmt::format(
      "{} of {} images cannot be used, more than data.bad_images.max_fraction = {} allows "
      "({}); remove or replace them, or continue without them: --set "
      "data.bad_images.max_fraction={}",
      count, total, config.max_fraction(), named,
      EnoughFraction(static_cast<double>(count) / static_cast<double>(total))));
}

}  // namespace ringtail
