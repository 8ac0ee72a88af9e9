#include "apps/report/run_history.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

namespace ringtail {
namespace {

double NumberOf(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : kNoMetric;
}

class Mean {
 public:
  void Add(double value) {
    if (!std::isfinite(value)) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? kNoMetric : sum_ / count_; }

 private:
  double sum_ = 0;
  int count_ = 0;
};

// The last step, epoch and time, and the means of the rest.
HistoryPoint MeanOf(std::span<const HistoryPoint> points) {
  Mean loss, accuracy, rate;
  for (const HistoryPoint& point : points) {
    loss.Add(point.loss);
    accuracy.Add(point.accuracy);
    rate.Add(point.learning_rate);
  }
  return {.step = points.back().step,
          .epoch = points.back().epoch,
          .loss = loss.value(),
          .accuracy = accuracy.value(),
          .learning_rate = rate.value(),
          .time = points.back().time};
}

}  // namespace

StatusOr<RunHistory> ReadRunHistory(const std::string& metrics_path) {
  std::map<std::string, std::vector<HistoryPoint>> by_kind;
  std::error_code ignored;
  if (!std::filesystem::exists(metrics_path, ignored)) return RunHistory{};
  std::ifstream file(metrics_path);
  if (!file) return NotFound(fmt::format("cannot read '{}'", metrics_path));
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    const auto kind = json.find("kind"), step = json.find("step");
    if (kind == json.end() || !kind->is_string() || step == json.end()) continue;
    if (!step->is_number_integer()) continue;
    by_kind[kind->get<std::string>()].push_back({.step = step->get<int64_t>(),
                                                 .epoch = NumberOf(json, "epoch"),
                                                 .loss = NumberOf(json, "loss"),
                                                 .accuracy = NumberOf(json, "accuracy"),
                                                 .learning_rate = NumberOf(json, "learning_rate"),
                                                 .time = NumberOf(json, "time")});
  }
  RunHistory history;
  history.evaluation = std::move(by_kind["evaluation"]);
  for (const char* kind : {"round", "update", "step"}) {
    if (history.training.empty()) history.training = std::move(by_kind[kind]);
  }
  return history;
}

std::vector<HistoryPoint> Thin(const std::vector<HistoryPoint>& points, size_t most) {
  std::vector<HistoryPoint> thinned;
  const size_t stretches = std::min(points.size(), most);
  for (size_t i = 0; i < stretches; ++i) {
    const size_t begin = i * points.size() / stretches, end = (i + 1) * points.size() / stretches;
    thinned.push_back(MeanOf(std::span(points).subspan(begin, end - begin)));
  }
  return thinned;
}

std::vector<HistoryPoint> TrainingBetween(const RunHistory& history) {
  std::vector<HistoryPoint> means;
  auto begin = history.training.begin();
  for (const HistoryPoint& evaluation : history.evaluation) {
    const auto end = std::find_if(begin, history.training.end(), [&](const HistoryPoint& point) {
      return point.step > evaluation.step;
    });
    HistoryPoint mean;
    if (begin != end) mean = MeanOf(std::span(begin, end));
    mean.step = evaluation.step;
    mean.epoch = evaluation.epoch;
    means.push_back(mean);
    begin = end;
  }
  return means;
}

}  // namespace ringtail
