#include "core/text/utf8.h"

namespace ringtail {
namespace {

// What the first byte of a character determines: its length in bytes (0: invalid) and the range of
// the second byte, which excludes overlong forms, surrogates and values that are too large.
struct Lead {
  size_t length;
  unsigned char second_low, second_high;
};

Lead ReadLead(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

size_t Utf8CharacterLength(std::string_view text) {
  const Lead lead = ReadLead(text[0]);
  if (lead.length <= 1) return lead.length;
  if (text.size() < lead.length) return 0;
  const unsigned char second = text[1];
  if (second < lead.second_low || second > lead.second_high) return 0;
  for (size_t i = 2; i < lead.length; ++i) {
    if (!IsUtf8Continuation(text[i])) return 0;
  }
  return lead.length;
}

size_t ValidUtf8Prefix(std::string_view text) {
  size_t valid = 0;
  while (valid < text.size()) {
    const size_t length = Utf8CharacterLength(text.substr(valid));
    if (length == 0) break;
    valid += length;
  }
  return valid;
}

}  // namespace ringtail
