// Fields of configs that had another name: files, checkpoints and --set with the old one still mean the
// new one. To rename a field, add a row; nothing else is needed. Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_CONFIG_RENAMED_FIELDS_H_
#define RINGTAIL_CORE_CONFIG_RENAMED_FIELDS_H_

#include <string>
#include <string_view>

namespace ringtail {

// The name that a field has today.
std::string_view CurrentFieldName(std::string_view name);

// `text` (protobuf text format) with today's names. Everything else stays in its line and column as long as
// new names are not longer than old ones (checked); names in quotes and comments stay as they are.
std::string WithCurrentFieldNames(std::string_view text);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_RENAMED_FIELDS_H_
