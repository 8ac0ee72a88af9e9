#include "apps/trainer/checkpoint/metadata_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringtail {

std::string NumberList(const std::vector<int64_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

StatusOr<std::vector<int64_t>> ParseNumberList(const char* key, std::string_view text) {
  std::vector<int64_t> numbers;
  for (const std::string& part : SplitText(text, ',')) {
    const auto number = ParseNumber<int64_t>(part);
    if (!number || *number <= 0) {
      return DataLoss(fmt::format(
          "'{}' is '{}', no list of positive numbers: the checkpoint is damaged", key, text));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::string AllreducesText(const std::map<int64_t, std::string>& by_bytes) {
  std::vector<std::string> parts;
  parts.reserve(by_bytes.size());
  for (const auto& [bytes, name] : by_bytes) parts.push_back(fmt::format("{}={}", bytes, name));
  return fmt::format("{}", fmt::join(parts, ","));
}

StatusOr<std::map<int64_t, std::string>> ParseAllreduces(std::string_view text) {
  std::map<int64_t, std::string> by_bytes;
  for (const std::string& part : SplitText(text, ',')) {
    const size_t equals = std::min(part.find('='), part.size());
    const auto bytes = ParseNumber<int64_t>(std::string_view(part).substr(0, equals));
    if (!bytes || *bytes < 0 || equals == part.size()) {
      return DataLoss(fmt::format(
          "'{}' in 'allreduce_algorithms' is not BYTES=ALGORITHM: the checkpoint is damaged",
          part));
    }
    by_bytes[*bytes] = part.substr(equals + 1);
  }
  return by_bytes;
}

std::vector<std::string> SplitText(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace ringtail
