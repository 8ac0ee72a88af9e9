// The configs of configs/*.textproto as of the build: networks that `--config NAME` finds from any
// folder. Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_CONFIG_SHIPPED_CONFIGS_H_
#define RINGTAIL_APPS_CONFIG_SHIPPED_CONFIGS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace ringtail {

struct ShippedConfig {
  std::string_view name;  // "resnet18"
  std::string_view text;  // the file
};

inline constexpr std::string_view kDefaultConfig = "dogs_vs_cats";

std::span<const ShippedConfig> ShippedConfigs();                // by name, ascending
const ShippedConfig* FindShippedConfig(std::string_view name);  // null if there is none
std::vector<std::string> ShippedConfigNames();

// What a user means by --config: a word is the name of a shipped config, or else a file; with a '/'
// or the ending .textproto it is a file. `path` is empty for a shipped one.
struct ConfigChoice {
  const ShippedConfig* shipped = nullptr;
  std::string path;
};
// InvalidArgument if there is neither, with the nearest name.
StatusOr<ConfigChoice> ChooseConfig(const std::string& word);

// For messages: "resnet18.textproto (built in)".
std::string ShippedFileName(const ShippedConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_CONFIG_SHIPPED_CONFIGS_H_
