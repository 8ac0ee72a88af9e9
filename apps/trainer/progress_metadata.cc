#include "apps/trainer/progress_metadata.h"

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
  return progress;
}

}  // namespace ringtail
