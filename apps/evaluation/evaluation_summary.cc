#include "apps/evaluation/evaluation_summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/text/counted.h"
#include "core/text/printable.h"

namespace ringtail {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kTop = 5;
constexpr size_t kConfusedInText = 5;

// How many classes are likelier than the label; of equal ones the first counts as likelier.
int64_t RankOfLabel(const ScoredImages& scored, int64_t i) {
  const std::span<const double> row = scored.row(i);
  const int32_t label = scored.labels[i];
  int64_t before = 0;
  for (int32_t k = 0; k < std::ssize(row); ++k) {
    before += row[k] > row[label] || (row[k] == row[label] && k < label) ? 1 : 0;
  }
  return before;
}

std::optional<double> TopAccuracy(const ScoredImages& scored) {
  if (scored.classes() <= kTop) return std::nullopt;
  int64_t among = 0;
  for (int64_t i = 0; i < scored.images(); ++i) among += RankOfLabel(scored, i) < kTop ? 1 : 0;
  return static_cast<double>(among) / static_cast<double>(std::max<int64_t>(scored.images(), 1));
}

// Characters, not bytes, so that columns align with umlauts.
size_t Width(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

std::string Row(const std::string& name, size_t width, const ClassScore& score) {
  return fmt::format("{}{}  {:9.2f} {:9.2f} {:9.2f} {:9}\n", std::string(width - Width(name), ' '),
                     name, score.precision, score.recall, score.f1, score.support);
}

std::string ClassTable(const EvaluationSummary& summary,
                       const std::vector<std::string>& class_names) {
  constexpr char kWeighted[] = "weighted avg";
  size_t width = sizeof(kWeighted) - 1;
  for (const std::string& name : class_names) width = std::max(width, Width(Printable(name)));
  std::string text = fmt::format("{:{}}  {:>9} {:>9} {:>9} {:>9}\n\n", "", width, "precision",
                                 "recall", "f1-score", "support");
  for (size_t k = 0; k < class_names.size(); ++k) {
    text += Row(Printable(class_names[k]), width, summary.scores.classes[k]);
  }
  text += fmt::format("\n{:>{}}  {:>9} {:>9} {:9.2f} {:9}\n", "accuracy", width, "", "",
                      summary.accuracy, summary.images);
  return text + Row("macro avg", width, summary.scores.macro) +
         Row(kWeighted, width, summary.scores.weighted);
}

std::string Measure(double value) {
  return std::isnan(value) ? "undefined" : fmt::format("{:.4f}", value);
}

std::string ConfusedText(const EvaluationSummary& summary,
                         const std::vector<std::string>& class_names) {
  if (summary.most_confused.empty()) return "no class was taken for another\n";
  std::string text = "most confused: ";
  const size_t shown = std::min(summary.most_confused.size(), kConfusedInText);
  for (size_t i = 0; i < shown; ++i) {
    const Confusion& pair = summary.most_confused[i];
    text += fmt::format("{}{} taken for {} ({})", i == 0 ? "" : ", ",
                        Printable(class_names[pair.label]), Printable(class_names[pair.predicted]),
                        Counted(pair.count, "image"));
  }
  return text + '\n';
}

Json ScoreJson(const ClassScore& score) {
  return {{"precision", score.precision},
          {"recall", score.recall},
          {"f1-score", score.f1},
          {"support", score.support}};
}

Json ReportJson(const EvaluationSummary& summary, const std::vector<std::string>& class_names) {
  Json report = Json::object();
  for (size_t k = 0; k < class_names.size(); ++k) {
    report[class_names[k]] = ScoreJson(summary.scores.classes[k]);
  }
  report["accuracy"] = summary.accuracy;
  report["macro avg"] = ScoreJson(summary.scores.macro);
  report["weighted avg"] = ScoreJson(summary.scores.weighted);
  return report;
}

Json MatrixJson(const ConfusionMatrix& matrix) {
  Json rows = Json::array();
  for (int64_t label = 0; label < matrix.classes(); ++label) {
    Json row = Json::array();
    for (int64_t k = 0; k < matrix.classes(); ++k) row.push_back(matrix.at(label, k));
    rows.push_back(std::move(row));
  }
  return rows;
}

// The names of scikit-learn's calibration_curve; empty bins are left out, as there.
Json CalibrationJson(const Calibration& calibration) {
  Json curve = {
      {"prob_true", Json::array()}, {"prob_pred", Json::array()}, {"images", Json::array()}};
  for (const CalibrationBin& bin : calibration.bins) {
    if (bin.images == 0) continue;
    curve["prob_true"].push_back(bin.accuracy);
    curve["prob_pred"].push_back(bin.confidence);
    curve["images"].push_back(bin.images);
  }
  return curve;
}

Json ConfusedJson(const EvaluationSummary& summary, const std::vector<std::string>& class_names) {
  Json pairs = Json::array();
  for (const Confusion& pair : summary.most_confused) {
    pairs.push_back({{"label", class_names[pair.label]},
                     {"predicted", class_names[pair.predicted]},
                     {"images", pair.count}});
  }
  return pairs;
}

}  // namespace

EvaluationSummary Summarize(const ScoredImages& scored) {
  EvaluationSummary summary;
  summary.matrix = ConfusionMatrix(scored.classes(), scored.labels, scored.predicted);
  summary.images = scored.images();
  summary.correct = summary.matrix.correct();
  const auto divisor = static_cast<double>(std::max<int64_t>(summary.images, 1));
  summary.accuracy = static_cast<double>(summary.correct) / divisor;
  summary.loss = std::accumulate(scored.losses.begin(), scored.losses.end(), 0.0) / divisor;
  summary.interval = WilsonInterval(summary.correct, summary.images);
  summary.top_5_accuracy = TopAccuracy(scored);
  summary.scores = ScoreClasses(summary.matrix);
  summary.ranking = MeanRanking(scored);
  summary.calibration = Calibrate(scored);
  summary.most_confused = MostConfused(summary.matrix, kMostConfused);
  return summary;
}

std::string SummaryText(const EvaluationSummary& summary,
                        const std::vector<std::string>& class_names) {
  std::string text = fmt::format("accuracy of all such images: {:.2f} to {:.2f} % (95 %, Wilson)",
                                 100 * summary.interval.low, 100 * summary.interval.high);
  if (summary.top_5_accuracy) {
    text += fmt::format(", top-5 accuracy {:.2f} %", 100 * *summary.top_5_accuracy);
  }
  const std::string of =
      class_names.size() == 2 ? "of " + Printable(class_names[1]) : "mean, one against the rest";
  return text + "\n\n" + ClassTable(summary, class_names) +
         fmt::format(
             "\nROC AUC {}, average precision {} ({}), calibration error {:.2f} % "
             "(expected, {} bins)\n",
             Measure(summary.ranking.roc_auc), Measure(summary.ranking.average_precision), of,
             100 * summary.calibration.expected_error, summary.calibration.bins.size()) +
         ConfusedText(summary, class_names);
}

std::string SummaryJson(const EvaluationSummary& summary,
                        const std::vector<std::string>& class_names,
                        const SummaryJsonFields& fields) {
  Json json = {{"accuracy", summary.accuracy},
               {"loss", summary.loss},
               {"part", fields.part},
               {"images", summary.images},
               {"correct", summary.correct},
               {"bad_images", fields.bad_images},
               {"images_per_s", fields.images_per_s},
               {"accuracy_interval_95", {summary.interval.low, summary.interval.high}},
               {"top_5_accuracy", nullptr},
               {"roc_auc_score", summary.ranking.roc_auc},
               {"average_precision_score", summary.ranking.average_precision},
               {"expected_calibration_error", summary.calibration.expected_error},
               {"calibration_curve", CalibrationJson(summary.calibration)},
               {"classes", class_names},
               {"classification_report", ReportJson(summary, class_names)},
               {"confusion_matrix", MatrixJson(summary.matrix)},
               {"most_confused", ConfusedJson(summary, class_names)}};
  if (summary.top_5_accuracy) json["top_5_accuracy"] = *summary.top_5_accuracy;
  if (!fields.network_crc32c.empty()) {
    json["network"] = fields.network;
    json["network_crc32c"] = fields.network_crc32c;
  }
  // Names of classes may hold any bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ringtail
