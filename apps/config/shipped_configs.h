// The config of runs without --config: configs/dogs_vs_cats.textproto as of the build.
#ifndef RINGTAIL_APPS_CONFIG_DEFAULT_CONFIG_H_
#define RINGTAIL_APPS_CONFIG_DEFAULT_CONFIG_H_

#include <string_view>

namespace ringtail {

inline constexpr std::string_view kDefaultConfigName = "dogs_vs_cats.textproto (built in)";
std::string_view DefaultConfigText();

}  // namespace ringtail

#endif  // RINGTAIL_APPS_CONFIG_DEFAULT_CONFIG_H_
