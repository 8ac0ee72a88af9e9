#include "apps/dogs_vs_cats/prediction_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/csv.h"
#include "core/text/printable.h"
#include "data/image_name.h"

namespace ringtail {
namespace {

struct PredictedClass {
  std::string label;
  double probability;
};

std::string NameOf(int64_t k, const std::vector<std::string>& class_names) {
  const bool named = k < static_cast<int64_t>(class_names.size());
  return named ? Printable(class_names[k]) : fmt::format("class {}", k);
}

PredictedClass PredictionOf(const ImageLogits& logits, int64_t i,
                            const std::vector<std::string>& class_names) {
  const int64_t best = ArgMax(logits.row(i));
  return {NameOf(best, class_names), Softmax(logits.row(i))[best]};
}

}  // namespace

std::string PredictionTable(const Dataset& dataset, const ImageLogits& logits,
                            const std::vector<std::string>& class_names) {
  size_t width = 0;
  for (const Sample& sample : dataset.samples()) width = std::max(width, sample.key.size());
  std::string table;
  for (size_t i = 0; i < dataset.samples().size(); ++i) {
    const std::string& key = dataset.samples()[i].key;
    if (logits.usable[i]) {
      const auto [label, probability] = PredictionOf(logits, static_cast<int64_t>(i), class_names);
      table += fmt::format("{:<{}}  {:<8} {:6.2f} %\n", key, width, label, 100 * probability);
    } else {
      table += fmt::format("{:<{}}  -\n", key, width);
    }
  }
  return table;
}

std::string PredictionCsv(const Dataset& dataset, const ImageLogits& logits,
                          const std::vector<std::string>& class_names) {
  std::string csv = "key,label,probability\n";
  for (size_t i = 0; i < dataset.samples().size(); ++i) {
    if (!logits.usable[i]) continue;
    const auto [label, probability] = PredictionOf(logits, static_cast<int64_t>(i), class_names);
    csv += fmt::format("{},{},{:.6f}\n", CsvField(dataset.samples()[i].key), CsvField(label),
                       probability);
  }
  return csv;
}

std::string PredictionJson(const Dataset& dataset, const ImageLogits& logits,
                           const std::vector<std::string>& class_names) {
  auto list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < dataset.samples().size(); ++i) {
    auto& entry = list.emplace_back();
    entry["file"] = dataset.samples()[i].key;
    entry["label"] = nullptr;
    if (!logits.usable[i]) continue;
    const std::vector<double> probabilities = Softmax(logits.row(static_cast<int64_t>(i)));
    const int64_t best = ArgMax(logits.row(static_cast<int64_t>(i)));
    entry["label"] = NameOf(best, class_names);
    entry["probability"] = probabilities[best];
    for (size_t k = 0; k < probabilities.size(); ++k) {
      entry["probabilities"][NameOf(static_cast<int64_t>(k), class_names)] = probabilities[k];
    }
  }
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

StatusOr<std::string> SubmissionCsv(const Dataset& dataset, const ImageLogits& logits) {
  constexpr double kUnknown = 0.5;
  if (logits.classes != 2) {
    return InvalidArgument(
        fmt::format("a submission needs two classes, the network has {}", logits.classes));
  }
  struct Line {
    std::string key;
    double dog;
  };
  std::map<int64_t, Line> by_id;
  for (size_t i = 0; i < dataset.samples().size(); ++i) {
    const std::string& key = dataset.samples()[i].key;
    const auto name = ParseNumberedName(key);
    if (!name) {
      return InvalidArgument(
          fmt::format("'{}' has no number in its name; a submission needs N.jpg", key));
    }
    const double dog =
        logits.usable[i] ? Softmax(logits.row(static_cast<int64_t>(i)))[1] : kUnknown;
    const auto [first, is_new] = by_id.emplace(name->number, Line{key, dog});
    if (!is_new) {
      return InvalidArgument(
          fmt::format("'{}' and '{}' have the same number, and a submission has one line for "
                      "each; give the folder of the test images alone",
                      first->second.key, key));
    }
  }
  std::string csv = "id,label\n";
  for (const auto& [id, line] : by_id) csv += fmt::format("{},{:.6f}\n", id, line.dog);
  return csv;
}

}  // namespace ringtail
