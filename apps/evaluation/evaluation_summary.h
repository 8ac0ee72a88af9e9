// Everything that `evaluate` measures of scored images, as values, as a table and as JSON.
//
//   Text   scikit-learn's classification_report (two digits), then the accuracy with its interval,
//          ROC AUC, average precision, calibration and the pairs of classes that are confused most
//   JSON   the same in scikit-learn's names: "classification_report" as with output_dict=True,
//          "confusion_matrix" (rows: truth), "roc_auc_score", "average_precision_score", ...;
//          what is undefined is null
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_EVALUATION_EVALUATION_SUMMARY_H_
#define RINGTAIL_APPS_EVALUATION_EVALUATION_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/evaluation/calibration.h"
#include "apps/evaluation/class_scores.h"
#include "apps/evaluation/ranking.h"
#include "apps/evaluation/scored_images.h"
#include "apps/evaluation/wilson_interval.h"

namespace ringtail {

inline constexpr size_t kMostConfused = 10;

struct EvaluationSummary {
  int64_t images = 0, correct = 0;
  double accuracy = 0, loss = 0;  // loss: the mean over images
  Interval interval;              // of the accuracy
  // The label is among the five likeliest classes; none with five classes or fewer.
  std::optional<double> top_5_accuracy;
  ConfusionMatrix matrix{0, {}, {}};
  ClassScores scores;
  RankingMeans ranking;
  Calibration calibration;
  std::vector<Confusion> most_confused;  // at most kMostConfused
};
EvaluationSummary Summarize(const ScoredImages& scored);

std::string SummaryText(const EvaluationSummary& summary,
                        const std::vector<std::string>& class_names);

// One object of JSON, compact.
struct SummaryJsonFields {
  std::string part;        // which images: "validation"
  int64_t bad_images = 0;  // that could not be read
  double images_per_s = 0;
  std::string network, network_crc32c;  // file name and checksum; empty: left out
};
std::string SummaryJson(const EvaluationSummary& summary,
                        const std::vector<std::string>& class_names,
                        const SummaryJsonFields& fields);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EVALUATION_EVALUATION_SUMMARY_H_
