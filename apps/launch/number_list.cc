#include "apps/launch/number_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ringtail {

std::string FormatNumbers(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::string text;
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += end - begin == 1 ? fmt::format("{}", numbers[begin])
                             : fmt::format("{}-{}", numbers[begin], numbers[end - 1]);
    begin = end;
  }
  return text;
}

StatusOr<std::vector<int>> ParseNumbers(const std::string& text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int first = 0, last = 0;
    auto result = std::from_chars(at, end, first);
    last = first;
    if (result.ec == std::errc() && result.ptr != end && *result.ptr == '-') {
      result = std::from_chars(result.ptr + 1, end, last);
    }
    if (result.ec != std::errc() || first < 0 || last < first || last >= kMostNumbers) {
      return InvalidArgument(fmt::format("'{}' is not a list of cores such as 0-3,8", text));
    }
    for (int number = first; number <= last; ++number) numbers.push_back(number);
    if (result.ptr == end) return numbers;
    if (*result.ptr != ',' || numbers.size() > kMostNumbers) {
      return InvalidArgument(fmt::format("'{}' is not a list of cores such as 0-3,8", text));
    }
    at = result.ptr + 1;
  }
}

}  // namespace ringtail
