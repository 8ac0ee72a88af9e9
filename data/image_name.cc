#include "data/image_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "core/text/printable.h"

namespace ringtail {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Lowercase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Removes the run of digits at the front of `text` and returns it without leading zeros.
std::string_view TakeDigits(std::string_view* text) {
  size_t length = 0;
  while (length < text->size() && IsDigit((*text)[length])) ++length;
  std::string_view digits = text->substr(0, length);
  text->remove_prefix(length);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

}  // namespace

bool NaturalLess(std::string_view a, std::string_view b) {
  std::string_view rest_a = a, rest_b = b;
  while (!rest_a.empty() && !rest_b.empty()) {
    if (IsDigit(rest_a[0]) && IsDigit(rest_b[0])) {
      const std::string_view x = TakeDigits(&rest_a), y = TakeDigits(&rest_b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (rest_a[0] != rest_b[0]) {
      return static_cast<unsigned char>(rest_a[0]) < static_cast<unsigned char>(rest_b[0]);
    }
    rest_a.remove_prefix(1);
    rest_b.remove_prefix(1);
  }
  if (rest_a.empty() != rest_b.empty()) return rest_a.empty();
  return a < b;
}

std::string EscapeName(std::string_view bytes) {
  std::string escaped;
  while (!bytes.empty()) {
    const size_t length = bytes[0] == '\\' ? 0 : PrintableCharacter(bytes);
    if (length > 0) {
      escaped += bytes.substr(0, length);
    } else {
      escaped += fmt::format("\\x{:02X}", static_cast<unsigned char>(bytes[0]));
    }
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  return escaped;
}

bool IsPrintable(std::string_view text) {
  while (!text.empty()) {
    const size_t length = PrintableCharacter(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string CanonicalClassName(std::string_view name) {
  const std::string lower = Lowercase(name);
  if (lower == "cat" || lower == "cats") return "cat";
  if (lower == "dog" || lower == "dogs") return "dog";
  return std::string(name);
}

std::optional<NumberedName> ParseNumberedName(std::string_view key) {
  std::string_view name = key.substr(key.rfind('/') + 1);  // npos + 1 is 0
  const size_t extension = name.rfind('.');
  if (extension == std::string_view::npos) return std::nullopt;
  name = name.substr(0, extension);
  const size_t dot = name.rfind('.');
  const std::string_view digits = dot == std::string_view::npos ? name : name.substr(dot + 1);
  NumberedName parsed;
  if (dot != std::string_view::npos) parsed.stem = name.substr(0, dot);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), IsDigit)) return std::nullopt;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), parsed.number);
  if (error != std::errc()) return std::nullopt;  // more digits than a number has
  return parsed;
}

}  // namespace ringtail
