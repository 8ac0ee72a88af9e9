// Formatted text on standard output. Output that cannot be written (`| head`, a closed terminal) is
// dropped, so that a run continues to its end; fmt::print would throw.
// Thread-safety: that of stdio.
#ifndef RINGTAIL_APPS_PRINT_H_
#define RINGTAIL_APPS_PRINT_H_

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

namespace ringtail {

template <typename... T>
void PrintTo(std::FILE* out, fmt::format_string<T...> format, T&&... arguments) {
  const std::string text = fmt::format(format, std::forward<T>(arguments)...);
  (void)!std::fwrite(text.data(), 1, text.size(), out);
}

template <typename... T>
void Print(fmt::format_string<T...> format, T&&... arguments) {
  PrintTo(stdout, format, std::forward<T>(arguments)...);
}

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PRINT_H_
