// Strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
// Thread-safety: functions without state. Cost: one pass.
#ifndef RINGTAIL_CORE_UTF8_H_
#define RINGTAIL_CORE_UTF8_H_

#include <cstddef>
#include <string_view>

namespace ringtail {

// Bytes of the character that `text` (not empty) begins with, or 0.
size_t Utf8CharacterLength(std::string_view text);

// The length of the longest prefix of `text` that is valid; text.size() if all of it is.
size_t ValidUtf8Prefix(std::string_view text);

// Whether `byte` continues a character, so that it starts no column of its own.
inline bool IsUtf8Continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace ringtail

#endif  // RINGTAIL_CORE_UTF8_H_
