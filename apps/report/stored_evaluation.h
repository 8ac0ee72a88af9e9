// The evaluation of a run's network, kept in the run's folder so that reports need not repeat it:
//
//   evaluation.csv    a row per image, as of `evaluate --csv`
//   evaluation.json   the summary, as of `evaluate --json`, with the file of the network and its
//                     checksum: another network makes the evaluation obsolete
//
// Thread-safety: one writer per folder. Errors: those of the file system.
#ifndef RINGTAIL_APPS_REPORT_STORED_EVALUATION_H_
#define RINGTAIL_APPS_REPORT_STORED_EVALUATION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "apps/evaluation/scored_images.h"
#include "core/status.h"

namespace ringtail {

inline constexpr char kEvaluationRowsName[] = "evaluation.csv";
inline constexpr char kEvaluationSummaryName[] = "evaluation.json";

struct StoredEvaluation {
  std::string network;         // name of its file: "final.safetensors"
  std::string network_crc32c;  // of that file (core/storage/crc32c.h)
  std::string part;            // "validation"
  ScoredImages scored;
  int64_t bad_images = 0;
  double images_per_s = 0;
};

Status StoreEvaluation(const std::string& run_folder, const StoredEvaluation& evaluation);
// Empty if there is none of this network, or if it is damaged.
std::optional<StoredEvaluation> FindEvaluation(const std::string& run_folder,
                                               const std::string& network_crc32c);

StatusOr<std::string> FileCrc32c(const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_STORED_EVALUATION_H_
