#include "apps/trainer/update/compression_ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ringtail {
namespace {

// In the order of LayerWay.
constexpr std::string_view kLetters = "dgsk";

}  // namespace

char LetterOf(LayerWay way) { return kLetters[static_cast<size_t>(way)]; }
LayerWay WayOf(char letter) { return static_cast<LayerWay>(kLetters.find(letter)); }

std::string WaysText(const CompressionWays& ways) {
  return fmt::format("{}:{}", ways.world, ways.letters);
}

StatusOr<CompressionWays> ParseWays(const std::string& text) {
  CompressionWays ways;
  const size_t colon = text.find(':');
  const char* const end = text.data() + std::min(colon, text.size());
  const auto [stop, error] = std::from_chars(text.data(), end, ways.world);
  if (colon == std::string::npos || stop != end || error != std::errc()) {
    return DataLoss(fmt::format(
        "'{}' is '{}', which says no number of ranks: the checkpoint is damaged", kWaysKey, text));
  }
  ways.letters = text.substr(colon + 1);
  return ways;
}

Status CheckWays(const std::string& ways, std::span<const LayerScheme> schemes) {
  bool fits = ways.size() == schemes.size();
  for (size_t i = 0; fits && i < ways.size(); ++i) {
    const LayerScheme& scheme = schemes[i];
    switch (ways[i]) {
      case 'd':
        break;
      case 'g':
        fits = scheme.codec != nullptr;
        break;
      case 's':
        fits = scheme.can_shard();
        break;
      case 'k':
        fits = scheme.sketch != nullptr;
        break;
      default:
        fits = false;
    }
  }
  if (fits) return OkStatus();
  return DataLoss(
      fmt::format("'{}' does not fit the network: the checkpoint is damaged", kWaysKey));
}

}  // namespace ringtail
