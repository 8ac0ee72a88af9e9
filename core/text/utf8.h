// Strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
// Thread-safety: functions without state. Cost: one pass.
#ifndef RINGTAIL_CORE_TEXT_UTF8_H_
#define RINGTAIL_CORE_TEXT_UTF8_H_

#include <cstddef>
#include <string_view>

namespace ringtail {

// Bytes of the character at the front of `text` (not empty); 0 if it is invalid.
size_t Utf8CharacterLength(std::string_view text);

// Length of the longest valid prefix of `text`.
size_t ValidUtf8Prefix(std::string_view text);

// Whether `byte` continues a character, so that it does not start a new column.
inline bool IsUtf8Continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace ringtail

#endif  // RINGTAIL_CORE_TEXT_UTF8_H_
