#include "apps/trainer/checkpoint/progress_metadata.h"

#include <fmt/core.h>

#include <charconv>

namespace ringtail {
namespace {

// Every field once, for both directions.
template <typename Progress, typename Visit>
void VisitFields(Progress* progress, const Visit& visit) {
  visit("completed_steps", &progress->step);
  visit("evaluated_step", &progress->evaluated_step);
  visit("best_step", &progress->best_step);
  visit("best_accuracy", &progress->best_accuracy);
  visit("skipped_steps", &progress->skipped_steps);
  visit("skipped_in_a_row", &progress->skipped_in_a_row);
}

template <typename Number>
Status ParseNumber(const std::map<std::string, std::string>& metadata, const char* key,
                   Number* value) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) {
    return DataLoss(fmt::format("'{}' is missing: this is no checkpoint of a training run", key));
  }
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc() && end == text.data() + text.size()) return OkStatus();
  return DataLoss(fmt::format("'{}' is '{}', which is no number", key, text));
}

Status CheckBetween(const char* key, double value, double low, double high) {
  if (value >= low && value <= high) return OkStatus();  // false for a NaN
  return DataLoss(
      fmt::format("'{}' is {}, which is not between {} and {}: the checkpoint is damaged", key,
                  value, low, high));
}

// No run comes to a state that says otherwise.
Status CheckPlausible(const TrainingProgress& progress) {
  constexpr double kMostSteps = 1e12;
  const auto step = static_cast<double>(progress.step);
  RT_RETURN_IF_ERROR(CheckBetween("completed_steps", step, 0, kMostSteps));
  const auto between = [](const char* key, int64_t value, double low, double high) {
    return CheckBetween(key, static_cast<double>(value), low, high);
  };
  RT_RETURN_IF_ERROR(between("evaluated_step", progress.evaluated_step, 0, step));
  RT_RETURN_IF_ERROR(between("best_step", progress.best_step, -1, step));
  RT_RETURN_IF_ERROR(CheckBetween("best_accuracy", progress.best_accuracy, -1, 1));
  RT_RETURN_IF_ERROR(between("skipped_steps", progress.skipped_steps, 0, step));
  return between("skipped_in_a_row", progress.skipped_in_a_row, 0, step);
}

}  // namespace

std::map<std::string, std::string> ProgressMetadata(const TrainingProgress& progress) {
  std::map<std::string, std::string> metadata;
  // fmt prints the shortest text that reads back to the same bits.
  VisitFields(&progress, [&](const char* key, const auto* value) {
    metadata[key] = fmt::format("{}", *value);
  });
  return metadata;
}

StatusOr<TrainingProgress> ParseProgress(const std::map<std::string, std::string>& metadata) {
  TrainingProgress progress;
  Status status = OkStatus();
  VisitFields(&progress, [&](const char* key, auto* value) {
    if (status.ok()) status = ParseNumber(metadata, key, value);
  });
  RT_RETURN_IF_ERROR(std::move(status));
  RT_RETURN_IF_ERROR(CheckPlausible(progress));
  return progress;
}

}  // namespace ringtail
