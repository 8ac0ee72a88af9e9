#include "apps/report/results_table.h"

#include <fmt/core.h>

#include <cmath>
#include <vector>

namespace ringtail {
namespace {

std::string Field(double value) {
  return std::isfinite(value) ? fmt::format(",{:.6g}", value) : ",";
}

}  // namespace

std::string ResultsCsv(const RunHistory& history) {
  std::string csv =
      "epoch,step,time,train/loss,train/accuracy,val/loss,metrics/accuracy_top1,lr/pg0\n";
  const std::vector<HistoryPoint> training = TrainingBetween(history);
  const std::vector<HistoryPoint>& first =
      history.training.empty() ? history.evaluation : history.training;
  for (size_t i = 0; i < history.evaluation.size(); ++i) {
    const HistoryPoint& evaluation = history.evaluation[i];
    csv += fmt::format("{:.6g},{}", evaluation.epoch, evaluation.step) +
           Field(evaluation.time - first.front().time) + Field(training[i].loss) +
           Field(training[i].accuracy) + Field(evaluation.loss) + Field(evaluation.accuracy) +
           Field(training[i].learning_rate) + "\n";
  }
  return csv;
}

}  // namespace ringtail
