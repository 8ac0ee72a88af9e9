#include "core/text/counted.h"

#include <fmt/format.h>

namespace ringtail {

std::string CountedInteger(int64_t number, std::string_view unit) {
  return fmt::format("{} {}{}", number, unit, number == 1 ? "" : "s");
}

std::string CountedReal(double number, std::string_view unit) {
  const std::string text = fmt::format("{:.4g}", number);
  return fmt::format("{} {}{}", text, unit, text == "1" ? "" : "s");
}

}  // namespace ringtail
