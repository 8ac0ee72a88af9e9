#include "apps/trainer/asynchronous/server_progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "apps/trainer/checkpoint/metadata_text.h"

namespace ringtail {

int64_t ServerProgress::rows_used() const {
  int64_t used = next;
  for (const Ticket& ticket : unused) used -= ticket.rows;
  return used;
}

int64_t NextRoundEnd(const TrainingPlan& plan, int64_t begin, int64_t handed_out) {
  const int64_t total = plan.total_steps();
  int64_t end = std::min(std::max(begin + 1, handed_out), total);
  while (end < total && !plan.EvaluationIsDue(begin, end) && !plan.CheckpointIsDue(begin, end) &&
         plan.PhaseAt(end).image_size == plan.PhaseAt(begin).image_size) {
    ++end;
  }
  return end;
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

std::string RuleScalarsText(const RuleScalars& s) {
  return fmt::format("{} {} {} {}", s.updates, s.usual_weight, s.learning_rate, s.mean_step);
}

StatusOr<RuleScalars> ParseRuleScalars(const std::string& text) {
  constexpr size_t kFields = 4;
  if (text.empty()) return RuleScalars();
  const std::vector<std::string> parts = SplitText(text, ' ');
  const auto updates = ParseNumber<int64_t>(parts.front());
  std::vector<double> reals;
  for (size_t i = 1; i < parts.size(); ++i) {
    reals.push_back(ParseNumber<double>(parts[i]).value_or(-1));
  }
  const auto plausible = [](double value) { return std::isfinite(value) && value >= 0; };
  if (parts.size() != kFields || updates.value_or(-1) < 0 ||
      !std::ranges::all_of(reals, plausible)) {
    return DataLoss(fmt::format(
        "what the servers' rule has learnt: '{}' are not four numbers of at least 0", text));
  }
  return RuleScalars{.updates = *updates,
                     .usual_weight = reals[0],
                     .learning_rate = reals[1],
                     .mean_step = reals[2]};
}

}  // namespace ringtail
