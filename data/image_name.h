// Names of image files: order, parsing and printing.
//
// A file name is any sequence of bytes but '/' and NUL. Ringtail prints, sorts and hashes its
// escaped form: printable characters (core/text/printable.h), the same on every machine. Nothing here
// depends on the locale. Thread-safety: functions without state.
#ifndef RINGTAIL_DATA_IMAGE_NAME_H_
#define RINGTAIL_DATA_IMAGE_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringtail {

// "cat.2" < "cat.10": runs of digits compare as numbers, everything else as bytes. Names that are
// equal by this rule ("7" and "07") compare as bytes, so this is a total order.
bool NaturalLess(std::string_view a, std::string_view b);

struct NaturalOrder {
  bool operator()(std::string_view a, std::string_view b) const { return NaturalLess(a, b); }
};

// Escapes bytes that are not printable UTF-8, and the backslash, as "\xE9". Different names stay
// different.
std::string EscapeName(std::string_view bytes);
// Whether every character is printable, as in each name that EscapeName returns.
bool IsPrintable(std::string_view text);

// "Cat", "CATS" -> "cat" and "Dogs" -> "dog", so that a network trained on Kaggle's names can be
// evaluated on Microsoft's. Other names are unchanged.
std::string CanonicalClassName(std::string_view name);

// "train/cat.12.jpg" -> {"cat", 12}; "Cat/12.jpg" -> {"", 12}. nullopt for other names.
struct NumberedName {
  std::string stem;
  int64_t number = 0;
};
std::optional<NumberedName> ParseNumberedName(std::string_view key);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_IMAGE_NAME_H_
