#include "apps/report/stored_evaluation.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "apps/evaluation/evaluation_summary.h"
#include "core/storage/crc32c.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

constexpr int64_t kAnySize = std::numeric_limits<int64_t>::max();

std::optional<nlohmann::json> ReadJson(const std::string& path) {
  const auto text = ReadFileText(path, kAnySize);
  if (!text.ok()) return std::nullopt;
  auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

template <typename Value>
Value FieldOf(const nlohmann::json& json, const char* key, Value otherwise) {
  const auto found = json.find(key);
  const bool fits = found != json.end() &&
                    (std::is_same_v<Value, std::string> ? found->is_string() : found->is_number());
  return fits ? found->get<Value>() : otherwise;
}

}  // namespace

StatusOr<std::string> FileCrc32c(const std::string& path) {
  RT_ASSIGN_OR_RETURN(const auto bytes, ReadFileBytes(path, kAnySize));
  return Crc32cToHex(Crc32c(bytes));
}

// The rows first: without a summary of their network they do not count.
Status StoreEvaluation(const std::string& run_folder, const StoredEvaluation& evaluation) {
  RT_RETURN_IF_ERROR(
      WriteFileAtomic(run_folder + "/" + kEvaluationRowsName, ScoredImagesCsv(evaluation.scored)));
  return WriteFileAtomic(run_folder + "/" + kEvaluationSummaryName,
                         SummaryJson(Summarize(evaluation.scored), evaluation.scored.class_names,
                                     {.part = evaluation.part,
                                      .bad_images = evaluation.bad_images,
                                      .images_per_s = evaluation.images_per_s,
                                      .network = evaluation.network,
                                      .network_crc32c = evaluation.network_crc32c}) +
                             '\n');
}

std::optional<StoredEvaluation> FindEvaluation(const std::string& run_folder,
                                               const std::string& network_crc32c) {
  const auto summary = ReadJson(run_folder + "/" + kEvaluationSummaryName);
  if (!summary || FieldOf<std::string>(*summary, "network_crc32c", "") != network_crc32c) {
    return std::nullopt;
  }
  const auto rows = ReadFileText(run_folder + "/" + kEvaluationRowsName, kAnySize);
  if (!rows.ok()) return std::nullopt;
  auto scored = ParseScoredImages(*rows);
  if (!scored.ok() || scored->images() != FieldOf<int64_t>(*summary, "images", -1)) {
    return std::nullopt;
  }
  return StoredEvaluation{.network = FieldOf<std::string>(*summary, "network", ""),
                          .network_crc32c = network_crc32c,
                          .part = FieldOf<std::string>(*summary, "part", ""),
                          .scored = *std::move(scored),
                          .bad_images = FieldOf<int64_t>(*summary, "bad_images", 0),
                          .images_per_s = FieldOf<double>(*summary, "images_per_s", 0)};
}

}  // namespace ringtail
