#include "apps/config/shipped_configs.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/config/nearest_name.h"
#include "core/logging.h"

namespace ringtail {
namespace {

constexpr std::string_view kEnding = ".textproto";

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// What may have been meant by a file that is not there: "; ..." or nothing.
std::string Hint(const std::string& word) {
  const std::string stem = std::filesystem::path(word).stem().string();
  const std::string nearest = NearestName(stem, ShippedConfigNames());
  return nearest.empty() ? "" : fmt::format("; --config {} finds the shipped one", nearest);
}

}  // namespace

const ShippedConfig* FindShippedConfig(std::string_view name) {
  const auto configs = ShippedConfigs();
  const auto found = std::find_if(configs.begin(), configs.end(),
                                  [&](const ShippedConfig& config) { return config.name == name; });
  return found == configs.end() ? nullptr : &*found;
}

std::vector<std::string> ShippedConfigNames() {
  std::vector<std::string> names;
  for (const ShippedConfig& config : ShippedConfigs()) names.emplace_back(config.name);
  return names;
}

std::string ShippedFileName(const ShippedConfig& config) {
  return fmt::format("{}{} (built in)", config.name, kEnding);
}

StatusOr<ConfigChoice> ChooseConfig(const std::string& word) {
  if (word.find('/') != std::string::npos || word.ends_with(kEnding)) {
    if (Exists(word)) return ConfigChoice{.path = word};
    return InvalidArgument(fmt::format("there is no file '{}'{}", word, Hint(word)));
  }
  if (const ShippedConfig* shipped = FindShippedConfig(word)) {
    if (Exists(word)) {
      LogInfo(fmt::format("{} is the shipped config; the file of this name is ./{}", word, word));
    }
    return ConfigChoice{.shipped = shipped};
  }
  if (Exists(word)) return ConfigChoice{.path = word};
  const std::string nearest = NearestName(word, ShippedConfigNames());
  return InvalidArgument(
      fmt::format("'{}' is neither a shipped config ({}) nor a file{}", word,
                  fmt::join(ShippedConfigNames(), ", "),
                  nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
}

}  // namespace ringtail
