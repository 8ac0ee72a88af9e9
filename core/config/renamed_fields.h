// Renamed fields of configs: files, checkpoints and --set with the old name still work. To rename a
// field, add a row; nothing else is needed. Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_CONFIG_RENAMED_FIELDS_H_
#define RINGTAIL_CORE_CONFIG_RENAMED_FIELDS_H_

#include <string>
#include <string_view>

namespace ringtail {

// The current name of a field.
std::string_view CurrentFieldName(std::string_view name);

// `text` (protobuf text format) with current names. Everything else keeps its line and column,
// because no new name is longer than its old one (checked); quoted text and comments are not
// changed.
std::string WithCurrentFieldNames(std::string_view text);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_RENAMED_FIELDS_H_
