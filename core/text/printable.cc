#include "core/text/printable.h"

#include <algorithm>

#include "core/text/utf8.h"
#include "fmt/format.h"

namespace ringtail {
namespace {

// Compares encoded bytes; `text` starts with a whole character.
bool IsControl(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (byte(0) == 0xC2) return byte(1) < 0xA0;  // U+0080 .. U+009F
  if (byte(0) != 0xE2) return false;
  return (byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE) ||  // U+2028 .. U+202E
         (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);    // U+2066 .. U+2069
}

}  // namespace

size_t PrintableCharacter(std::string_view text) {
  const size_t length = Utf8CharacterLength(text);
  return length > 0 && !IsControl(text) ? length : 0;
}

std::string Printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const bool is_layout = text[0] == '\n' || text[0] == '\t';
    const size_t length = is_layout ? 1 : PrintableCharacter(text);
    if (length > 0) {
      printable += text.substr(0, length);
    } else {
      printable += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[0]));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return printable;
}

}  // namespace ringtail
