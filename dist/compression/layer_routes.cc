#include "dist/compression/layer_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ringtail {
namespace {

constexpr std::string_view kLetters = "dgsk";  // in the order of LayerRoute

bool CanTake(char letter, const LayerScheme& scheme) {
  if (kLetters.find(letter) == std::string_view::npos) return false;
  switch (RouteOf(letter)) {
    case LayerRoute::kDense:
      return true;
    case LayerRoute::kGathered:
      return scheme.codec != nullptr;
    case LayerRoute::kSharded:
      return scheme.can_shard();
    case LayerRoute::kSketched:
      return scheme.sketch != nullptr;
  }
  return false;
}

}  // namespace

char LetterOf(LayerRoute route) { return kLetters[static_cast<size_t>(route)]; }
LayerRoute RouteOf(char letter) { return static_cast<LayerRoute>(kLetters.find(letter)); }

std::string RoutesText(const SavedRoutes& routes) {
  return fmt::format("{}:{}{}{}", routes.world, routes.letters, routes.frozen.empty() ? "" : ":",
                     routes.frozen);
}

StatusOr<SavedRoutes> ParseRoutes(const std::string& text) {
  SavedRoutes routes;
  const size_t colon = text.find(':');
  const char* const end = text.data() + std::min(colon, text.size());
  const auto [stop, error] = std::from_chars(text.data(), end, routes.world);
  if (colon == std::string::npos || stop != end || error != std::errc()) {
    return DataLoss(
        fmt::format("'{}' is '{}', which says no number of ranks: the checkpoint is damaged",
                    kRoutesKey, text));
  }
  routes.letters = text.substr(colon + 1);
  if (const size_t next = routes.letters.find(':'); next != std::string::npos) {
    routes.frozen = routes.letters.substr(next + 1);
    routes.letters.resize(next);
  }
  return routes;
}

Status CheckRoutes(const std::string& letters, std::span<const LayerScheme> schemes) {
  const bool fit = std::ranges::equal(letters, schemes, CanTake);
  if (fit) return OkStatus();
  return DataLoss(
      fmt::format("'{}' does not fit the network: the checkpoint is damaged", kRoutesKey));
}

}  // namespace ringtail
