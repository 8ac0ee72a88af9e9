#include "data/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/random.h"
#include "data/image_name.h"

namespace ringtail {
namespace {

constexpr int32_t kMostFolds = 1000;

bool Contains(const NumberRange& range, int64_t number) {
  return number >= range.first() && number <= range.last();
}

std::string RangeString(const NumberRange& range) {
  return fmt::format("{}..{}", range.first(), range.last());
}

StatusOr<Split> SplitByNumber(const SplitConfig& config, const std::vector<Sample>& samples) {
  RT_RETURN_IF_ERROR(CheckNumberRanges(config));
  Split split;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto name = ParseNumberedName(samples[i].key);
    if (samples[i].label < 0 || !name) continue;
    if (Contains(config.train(), name->number)) split.train.push_back(static_cast<int64_t>(i));
    if (Contains(config.validation(), name->number)) {
      split.validation.push_back(static_cast<int64_t>(i));
    }
  }
  for (const auto& [indices, range, part] :
       {std::tuple(&split.train, &config.train(), "train"),
        std::tuple(&split.validation, &config.validation(), "validation")}) {
    if (indices->empty()) {
      return InvalidArgument(
          fmt::format("no labelled image has a number in split.{} {}; numbers are the N of "
                      "cat.N.jpg or Cat/N.jpg",
                      part, RangeString(*range)));
    }
  }
  return split;
}

// For images that are already split by folders.
Split SplitByPart(const std::vector<Sample>& samples) {
  Split split;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].label < 0) continue;
    if (samples[i].part == SplitPart::kTrain) split.train.push_back(static_cast<int64_t>(i));
    if (samples[i].part == SplitPart::kValidation) {
      split.validation.push_back(static_cast<int64_t>(i));
    }
  }
  return split;
}

// Of each class in the order of labels: its samples, ranked by (seed, key).
std::vector<std::vector<int64_t>> RankClasses(uint64_t seed, const std::vector<Sample>& samples) {
  const RngKey key = RngKey(seed).With(kSplitStream);
  std::map<int32_t, std::vector<std::pair<uint64_t, int64_t>>> ranked;  // by label: (rank, index)
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].label < 0) continue;
    ranked[samples[i].label].emplace_back(key.With(samples[i].key).bits(), i);
  }
  std::vector<std::vector<int64_t>> classes;
  for (auto& [label, members] : ranked) {
    std::sort(members.begin(), members.end());
    std::vector<int64_t>& indices = classes.emplace_back();
    for (const auto& [rank, index] : members) indices.push_back(index);
  }
  return classes;
}

Split InOrder(Split split) {
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.validation.begin(), split.validation.end());
  return split;
}

Split SplitByFraction(double fraction, uint64_t seed, const std::vector<Sample>& samples) {
  Split split;
  for (const std::vector<int64_t>& members : RankClasses(seed, samples)) {
    const auto count = std::llround(fraction * static_cast<double>(members.size()));
    for (int64_t i = 0; i < std::ssize(members); ++i) {
      (i < count ? split.validation : split.train).push_back(members[i]);
    }
  }
  return InOrder(std::move(split));
}

Split SplitByFold(const SplitConfig& config, const std::vector<Sample>& samples) {
  Split split;
  int64_t dealt = 0;  // continues from class to class
  for (const std::vector<int64_t>& members : RankClasses(config.seed(), samples)) {
    for (const int64_t index : members) {
      const bool validates = dealt++ % config.folds() == config.fold();
      (validates ? split.validation : split.train).push_back(index);
    }
  }
  return InOrder(std::move(split));
}

}  // namespace

Status CheckNumberRanges(const SplitConfig& config) {
  if (config.has_train() != config.has_validation()) {
    return InvalidArgument(fmt::format("split.{} is given without split.{}; give both, or neither",
                                       config.has_train() ? "train" : "validation",
                                       config.has_train() ? "validation" : "train"));
  }
  if (!config.has_train()) return OkStatus();
  for (const auto& [range, part] :
       {std::pair(&config.train(), "train"), std::pair(&config.validation(), "validation")}) {
    if (!range->has_first() || !range->has_last()) {
      return InvalidArgument(fmt::format("split.{} needs both first and last", part));
    }
    if (range->first() < 0 || range->first() > range->last()) {
      return InvalidArgument(fmt::format(
          "split.{} {} is not a range; it must be 0 <= first <= last", part, RangeString(*range)));
    }
  }
  if (config.train().first() <= config.validation().last() &&
      config.validation().first() <= config.train().last()) {
    return InvalidArgument(
        fmt::format("split.train {} and split.validation {} overlap; no image may be in both",
                    RangeString(config.train()), RangeString(config.validation())));
  }
  return OkStatus();
}

Status CheckFolds(const SplitConfig& config) {
  const int32_t folds = config.folds(), fold = config.fold();
  if (folds != 0 && (folds < 2 || folds > kMostFolds)) {
    return InvalidArgument(fmt::format("folds is {}; it must be 2 to {}, or 0", folds, kMostFolds));
  }
  if (fold < 0 || fold >= std::max(folds, 1)) {
    return InvalidArgument(folds == 0
                               ? fmt::format("fold is {} without folds; say how many", fold)
                               : fmt::format("fold is {}; it must be 0 to {}, as folds is {}", fold,
                                             folds - 1, folds));
  }
  if (folds > 0 && (config.has_train() || config.has_validation())) {
    return InvalidArgument("folds divide all images: leave out split.train and split.validation");
  }
  return OkStatus();
}

StatusOr<Split> SplitDataset(const SplitConfig& config, const std::vector<Sample>& samples) {
  if (std::none_of(samples.begin(), samples.end(), [](const Sample& s) { return s.label >= 0; })) {
    return InvalidArgument(
        "none of the images has a label; name them cat.N.jpg and dog.N.jpg, or sort them into "
        "one "
        "folder per class");
  }
  RT_RETURN_IF_ERROR(CheckFolds(config));
  if (config.has_train() || config.has_validation()) return SplitByNumber(config, samples);
  if (std::any_of(samples.begin(), samples.end(),
                  [](const Sample& s) { return s.part != SplitPart::kByConfig; })) {
    if (config.folds() == 0) return SplitByPart(samples);
    return InvalidArgument(
        "split.folds divides images that are in one folder per class; these are in train/ and "
        "validation/ already");
  }
  if (config.folds() > 0) {
    Split split = SplitByFold(config, samples);
    if (!split.validation.empty() && !split.train.empty()) return split;
    return InvalidArgument(fmt::format(
        "data.split.folds {} of {} images leaves fold {} empty, or all others; take fewer folds",
        config.folds(), split.train.size() + split.validation.size(), config.fold()));
  }
  const double fraction = config.validation_fraction();
  if (!(fraction >= 0 && fraction < 1)) {
    return InvalidArgument(fmt::format(
        "data.split.validation_fraction is {}; it must be at least 0 and less than 1", fraction));
  }
  Split split = SplitByFraction(fraction, config.seed(), samples);
  if (fraction > 0 && split.validation.empty()) {
    return InvalidArgument(fmt::format(
        "data.split.validation_fraction {} of {} images leaves none for validation; take "
        "more images, a larger fraction, or 0",
        fraction, split.train.size()));
  }
  if (split.train.empty()) {
    return InvalidArgument(
        fmt::format("data.split.validation_fraction {} of {} images leaves none for training; take "
                    "more images or a smaller fraction",
                    fraction, split.validation.size()));
  }
  return split;
}

}  // namespace ringtail
