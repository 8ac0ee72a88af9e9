// Checks over all fields of a config message, whatever its schema. Private to core/, but for
// CheckFinite (core/config/text_config.h). Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_CONFIG_MESSAGE_CHECKS_H_
#define RINGTAIL_CORE_CONFIG_MESSAGE_CHECKS_H_

#include <string_view>

#include "core/config/text_config.h"

namespace ringtail {

// All strings are valid UTF-8, also those written with escapes ("\377"): what reads them later,
// such as a JSON writer, must not be the one that finds out.
Status CheckStrings(const google::protobuf::Message& config, const ConfigSource* source,
                    std::string_view path);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_MESSAGE_CHECKS_H_
