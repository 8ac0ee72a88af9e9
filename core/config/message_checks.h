// Checks over all fields of a config message, whatever its schema.
// Thread-safety: functions without state. Errors: InvalidArgument at the place of the first field
// that is wrong. `path` leads to `config` and may be empty; `source` may be null.
#ifndef RINGTAIL_CORE_CONFIG_MESSAGE_CHECKS_H_
#define RINGTAIL_CORE_CONFIG_MESSAGE_CHECKS_H_

#include <string_view>

#include "core/config/config_source.h"
#include "core/status.h"

namespace ringtail {

// No float or double is infinite or NaN, which the text format can spell (inf, nan).
Status CheckFinite(const google::protobuf::Message& config, const ConfigSource* source,
                   std::string_view path);

// All strings are valid UTF-8, including those written with escapes ("\377"): a later consumer such
// as a JSON writer must not be the first to notice.
Status CheckStrings(const google::protobuf::Message& config, const ConfigSource* source,
                    std::string_view path);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_MESSAGE_CHECKS_H_
