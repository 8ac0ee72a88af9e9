#include "apps/trainer/asynchronous/server_progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/trainer/checkpoint/metadata_text.h"

namespace ringtail {

int64_t ServerProgress::rows_used() const {
  int64_t used = next;
  for (const Ticket& ticket : unused) used -= ticket.rows;
  return used;
}

std::vector<int64_t> NumbersOf(const ServerProgress& progress) {
  std::vector<int64_t> numbers = {progress.version, progress.images, progress.next};
  for (const Ticket& ticket : progress.unused) {
    numbers.push_back(ticket.first);
    numbers.push_back(ticket.rows);
  }
  return numbers;
}

StatusOr<ServerProgress> ServerProgressOf(const std::vector<int64_t>& numbers) {
  constexpr size_t kFixed = 3;
  const bool whole = numbers.size() >= kFixed && numbers.size() % 2 == kFixed % 2;
  if (!whole || std::ranges::any_of(numbers, [](int64_t number) { return number < 0; })) {
    return DataLoss(fmt::format("how far the servers have come: {} are not three numbers and pairs",
                                fmt::join(numbers, " ")));
  }
  ServerProgress progress{.version = numbers[0], .images = numbers[1], .next = numbers[2]};
  for (size_t i = kFixed; i < numbers.size(); i += 2) {
    progress.unused.push_back({numbers[i], numbers[i + 1]});
  }
  return progress;
}

std::string ServerProgressText(const ServerProgress& progress) {
  return fmt::format("{}", fmt::join(NumbersOf(progress), " "));
}

StatusOr<ServerProgress> ParseServerProgress(const std::string& text) {
  std::vector<int64_t> numbers;
  if (text.empty()) return ServerProgress();
  for (const std::string& part : SplitText(text, ' ')) {
    const auto number = ParseNumber<int64_t>(part);
    if (!number) return DataLoss(fmt::format("'{}' in '{}' is no number", part, text));
    numbers.push_back(*number);
  }
  return ServerProgressOf(numbers);
}

}  // namespace ringtail
