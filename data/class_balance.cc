#include "data/class_balance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace ringtail {

std::vector<int64_t> ClassCounts(const Dataset& dataset, std::span<const int64_t> indices) {
  std::vector<int64_t> counts(dataset.class_names().size());
  for (const int64_t index : indices) {
    const int32_t label = dataset.samples()[index].label;
    if (label >= 0) ++counts[label];
  }
  return counts;
}

std::vector<float> ClassWeights(std::span<const int64_t> counts, double power) {
  double images = 0, weighted = 0;
  for (const int64_t count : counts) {
    if (count == 0) continue;
    const auto n = static_cast<double>(count);
    images += n;
    weighted += std::pow(n, 1 - power);
  }
  std::vector<float> weights;
  for (const int64_t count : counts) {
    const double weight =
        count == 0 ? 1 : images * std::pow(static_cast<double>(count), -power) / weighted;
    weights.push_back(static_cast<float>(weight));
  }
  return weights;
}

std::string DescribeClassWeights(const std::vector<std::string>& class_names,
                                 std::span<const int64_t> counts, double power) {
  constexpr size_t kMostByName = 10;
  const std::vector<float> weights = ClassWeights(counts, power);
  std::vector<std::string> parts;
  size_t low = counts.size(), high = counts.size();
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    if (low == counts.size() || weights[i] < weights[low]) low = i;
    if (high == counts.size() || weights[i] > weights[high]) high = i;
    parts.push_back(fmt::format("{} {:.3g}", class_names[i], weights[i]));
  }
  if (parts.size() <= kMostByName) return fmt::format("{}", fmt::join(parts, ", "));
  return fmt::format("from {:.3g} ({}) to {:.3g} ({})", weights[low], class_names[low],
                     weights[high], class_names[high]);
}

}  // namespace ringtail
