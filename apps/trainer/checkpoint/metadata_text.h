// Numbers and lists as the strings of a checkpoint's `__metadata__` hold them.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_METADATA_TEXT_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_METADATA_TEXT_H_

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/status.h"

namespace ringtail {

using Metadata = std::map<std::string, std::string>;

// Empty if there is no such key.
inline std::string TextOf(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found != metadata.end() ? found->second : std::string();
}

// None unless all of `text` is one number.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

// "43,21"
std::string NumberList(const std::vector<int64_t>& numbers);
// Positive numbers; DataLoss that names `key` for anything else.
StatusOr<std::vector<int64_t>> ParseNumberList(const char* key, std::string_view text);

// The algorithms of allreduces by bytes: "104=recursive_doubling,8388608=ring". DataLoss if the
// text is not that; whether there are such algorithms is for the selector to check.
std::string AllreducesText(const std::map<int64_t, std::string>& by_bytes);
StatusOr<std::map<int64_t, std::string>> ParseAllreduces(std::string_view text);

// Of what `separator` separates; an empty text has no parts.
std::vector<std::string> SplitText(std::string_view text, char separator);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_METADATA_TEXT_H_
