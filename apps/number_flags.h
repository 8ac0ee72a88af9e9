// What flags accept that take a number with a fraction.
//
//   ->check(CLI::Range(0.01, 1.0))              0.5, nan: neither below nor above anything
//   ->check(NumberIn(CLI::Range(0.01, 1.0)))    0.5
//
// (Flags that take an integer need only the range: nan is none.)
// Thread-safety: a function without state.
#ifndef RINGTAIL_APPS_NUMBER_FLAGS_H_
#define RINGTAIL_APPS_NUMBER_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>

namespace ringtail {

// Refuses nan, and what `range` refuses; in help it reads as `range` does.
inline CLI::Validator NumberIn(const CLI::Range& range) {
  const auto error = [range](std::string& text) {
    double number = 0;
    const bool converted = CLI::detail::lexical_cast(text, number);
    return converted && std::isnan(number) ? text + " is not a number" : range(text);
  };
  return {error, range.get_description()};
}

}  // namespace ringtail

#endif  // RINGTAIL_APPS_NUMBER_FLAGS_H_
