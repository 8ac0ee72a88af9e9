// Configs in protobuf text format, parsed with limits and with errors that point at the place in
// the file (core/config/config_source.h has an example).
//
// Limits: file <= 1 MiB, valid UTF-8, nesting <= 64, 100,000 fields and list elements. Fields that
// the schema does not know, values out of a type's range, and a singular field given twice are
// errors. The folder that owns a schema checks ranges itself, with ConfigSource::Error().
// Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_CONFIG_TEXT_CONFIG_H_
#define RINGTAIL_CORE_CONFIG_TEXT_CONFIG_H_

#include <string>
#include <string_view>

#include "core/config/config_source.h"
#include "core/status.h"

namespace ringtail {

// Parses `text`; messages call it `file_name`. `source` may be null. After an error `config` is
// empty and `source` unchanged.
Status ParseTextConfig(std::string_view text, std::string_view file_name,
                       google::protobuf::Message* config, ConfigSource* source);
Status ReadTextConfig(const std::string& path, google::protobuf::Message* config,
                      ConfigSource* source);

// Text that ParseTextConfig parses into the same config.
std::string PrintTextConfig(const google::protobuf::Message& config);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_TEXT_CONFIG_H_
