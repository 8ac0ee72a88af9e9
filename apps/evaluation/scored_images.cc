#include "apps/evaluation/scored_images.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "apps/csv.h"
#include "core/check.h"

namespace ringtail {
namespace {

constexpr std::string_view kFirstColumns[] = {"file", "label", "predicted", "loss"};
constexpr size_t kFixed = std::size(kFirstColumns);
constexpr std::string_view kPrefix = "probability_";

StatusOr<double> Number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument(fmt::format("'{}' is not a number", text));
  }
  return value;
}

StatusOr<int32_t> ClassOf(const std::string& name, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return InvalidArgument(fmt::format("'{}' is none of the classes in the heading", name));
  }
  return static_cast<int32_t>(found - names.begin());
}

StatusOr<std::vector<std::string>> ClassesOf(const std::vector<std::string>& heading) {
  std::vector<std::string> names;
  bool right = heading.size() > kFixed &&
               std::equal(std::begin(kFirstColumns), std::end(kFirstColumns), heading.begin());
  for (size_t i = kFixed; right && i < heading.size(); ++i) {
    right = heading[i].starts_with(kPrefix);
    if (right) names.push_back(heading[i].substr(kPrefix.size()));
  }
  if (!right) return InvalidArgument("the heading is not that of `evaluate --csv`");
  return names;
}

Status AddRow(const std::vector<std::string>& fields, ScoredImages* scored) {
  if (fields.size() != kFixed + scored->class_names.size()) {
    return InvalidArgument(
        fmt::format("has {} fields, not {}", fields.size(), kFixed + scored->class_names.size()));
  }
  RT_ASSIGN_OR_RETURN(const int32_t label, ClassOf(fields[1], scored->class_names));
  RT_ASSIGN_OR_RETURN(const int32_t predicted, ClassOf(fields[2], scored->class_names));
  RT_ASSIGN_OR_RETURN(const double loss, Number(fields[3]));
  for (size_t i = kFixed; i < fields.size(); ++i) {
    RT_ASSIGN_OR_RETURN(const double probability, Number(fields[i]));
    if (!(probability >= 0 && probability <= 1)) {
      return InvalidArgument(fmt::format("'{}' is not a probability", fields[i]));
    }
    scored->probabilities.push_back(probability);
  }
  scored->files.push_back(fields[0]);
  scored->labels.push_back(label);
  scored->predicted.push_back(predicted);
  scored->losses.push_back(loss);
  return OkStatus();
}

}  // namespace

ScoredImages MakeScoredImages(const ImageLogits& logits, const Dataset& dataset,
                              const std::vector<int64_t>& indices) {
  ScoredImages scored;
  scored.class_names = dataset.class_names();
  RT_CHECK(logits.classes >= scored.classes(), "at least one logit per class");
  while (scored.classes() < logits.classes) {
    scored.class_names.push_back(fmt::format("class {}", scored.classes()));
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    const Sample& sample = dataset.samples()[indices[i]];
    if (sample.label < 0 || !logits.usable[i]) continue;
    const std::span<const float> row = logits.row(static_cast<int64_t>(i));
    const std::vector<double> probabilities = Softmax(row);
    scored.files.push_back(sample.key);
    scored.labels.push_back(sample.label);
    scored.predicted.push_back(static_cast<int32_t>(ArgMax(row)));
    scored.losses.push_back(NegativeLogLikelihood(row, sample.label));
    scored.probabilities.insert(scored.probabilities.end(), probabilities.begin(),
                                probabilities.end());
  }
  return scored;
}

std::string ScoredImagesCsv(const ScoredImages& scored) {
  std::string csv = "file,label,predicted,loss";
  for (const std::string& name : scored.class_names) {
    csv += ',' + CsvField(std::string(kPrefix) + name);
  }
  csv += '\n';
  for (int64_t i = 0; i < scored.images(); ++i) {
    csv += fmt::format("{},{},{},{}", CsvField(scored.files[i]),
                       CsvField(scored.class_names[scored.labels[i]]),
                       CsvField(scored.class_names[scored.predicted[i]]), scored.losses[i]);
    for (const double probability : scored.row(i)) csv += fmt::format(",{}", probability);
    csv += '\n';
  }
  return csv;
}

StatusOr<ScoredImages> ParseScoredImages(std::string_view csv) {
  RT_ASSIGN_OR_RETURN(const auto lines, ParseCsv(csv));
  if (lines.empty()) return InvalidArgument("is empty");
  ScoredImages scored;
  RT_ASSIGN_OR_RETURN(scored.class_names, ClassesOf(lines.front()));
  for (size_t i = 1; i < lines.size(); ++i) {
    RT_RETURN_IF_ERROR(AddRow(lines[i], &scored).Annotate(fmt::format("row {}", i)));
  }
  return scored;
}

}  // namespace ringtail
