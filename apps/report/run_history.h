// The course of a run, as metrics.jsonl tells it: the means of training over short stretches, and
// each evaluation.
// Thread-safety: functions without state. Cost: reads the file once, about 5 us per line.
#ifndef RINGTAIL_APPS_REPORT_RUN_HISTORY_H_
#define RINGTAIL_APPS_REPORT_RUN_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/storage/metrics.h"

namespace ringtail {

struct HistoryPoint {
  int64_t step = 0;
  double epoch = kNoMetric;
  double loss = kNoMetric, accuracy = kNoMetric;  // accuracy: a fraction
  double learning_rate = kNoMetric;               // of training alone
  double time = kNoMetric;                        // UNIX seconds; files of older versions have none
};

struct RunHistory {
  std::vector<HistoryPoint> training;    // ascending
  std::vector<HistoryPoint> evaluation;  // ascending
};

// Of a file without lines, or none: an empty history. Lines that are torn are left out. Of ranks
// that take steps of their own the lines of rounds count, and not those of a rank's steps.
StatusOr<RunHistory> ReadRunHistory(const std::string& metrics_path);

// Means over at most `most` stretches of equally many points; a mean is over what is finite.
std::vector<HistoryPoint> Thin(const std::vector<HistoryPoint>& points, size_t most);

// For each evaluation the mean of training since the evaluation before.
std::vector<HistoryPoint> TrainingBetween(const RunHistory& history);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_RUN_HISTORY_H_
