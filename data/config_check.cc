#include "data/config_check.h"

#include <fmt/format.h>

#include <string>

#include "core/config/field_check.h"
#include "data/split.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxCacheMib = int64_t{16} << 20;  // 16 TiB
constexpr double kMaxPixel = 255, kMaxMixAlpha = 100;

Status CheckNumbers(const NumberRange& range, const FieldCheck& check) {
  if (!range.has_first()) return check.Error("", "first is missing; a range needs first and last");
  if (!range.has_last()) return check.Error("", "last is missing; a range needs first and last");
  RT_RETURN_IF_ERROR(check.AtLeast("first", range.first(), 0));
  return check.AtLeast("last", range.last(), static_cast<double>(range.first()));
}

Status CheckFoldFields(const SplitConfig& config, const FieldCheck& check) {
  const Status status = CheckFolds(config);
  if (status.ok()) return OkStatus();
  const int32_t folds = config.folds(), fold = config.fold();
  const bool of_fold = folds == 0 || (folds > 1 && (fold < 0 || fold >= folds));
  return check.Error(of_fold ? "fold" : "folds", status.message());
}

Status CheckSplit(const SplitConfig& config, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.FractionBelowOne("validation_fraction", config.validation_fraction()));
  RT_RETURN_IF_ERROR(CheckFoldFields(config, check));
  if (config.has_train()) {
    RT_RETURN_IF_ERROR(CheckNumbers(config.train(), check.Within("train")));
  }
  if (config.has_validation()) {
    RT_RETURN_IF_ERROR(CheckNumbers(config.validation(), check.Within("validation")));
  }
  const Status ranges = CheckNumberRanges(config);
  if (ranges.ok()) return OkStatus();
  return check.Error(config.has_validation() ? "validation" : "train", ranges.message());
}

// Requires both ends to be in their own ranges.
template <typename T>
Status CheckOrder(const FieldCheck& check, const char* low_name, T low, const char* high_name,
                  T high) {
  if (low <= high) return OkStatus();
  return check.Error(low_name, fmt::format("{} is {}; it must be at most {}, which is {}", low_name,
                                           low, high_name, high));
}

// Without alpha it would be off, though it is named.
template <typename Config>
Status CheckMix(const Config& config, const char* usual, const FieldCheck& check) {
  if (!config.has_alpha())
    return check.Error("", fmt::format("alpha is missing; {}, 0 is off", usual));
  return check.Between("alpha", config.alpha(), 0, kMaxMixAlpha);
}

Status CheckAugment(const AugmentConfig& config, const FieldCheck& check) {
  constexpr double kMinAspect = 0.1, kMaxAspect = 10;
  RT_RETURN_IF_ERROR(check.PositiveFraction("min_area", config.min_area()));
  RT_RETURN_IF_ERROR(check.PositiveFraction("max_area", config.max_area()));
  RT_RETURN_IF_ERROR(
      CheckOrder(check, "min_area", config.min_area(), "max_area", config.max_area()));
  RT_RETURN_IF_ERROR(check.Between("min_aspect", config.min_aspect(), kMinAspect, kMaxAspect));
  RT_RETURN_IF_ERROR(check.Between("max_aspect", config.max_aspect(), kMinAspect, kMaxAspect));
  RT_RETURN_IF_ERROR(
      CheckOrder(check, "min_aspect", config.min_aspect(), "max_aspect", config.max_aspect()));
  RT_RETURN_IF_ERROR(check.Fraction("flip_probability", config.flip_probability()));
  RT_RETURN_IF_ERROR(check.Fraction("brightness", config.brightness()));
  RT_RETURN_IF_ERROR(check.Fraction("contrast", config.contrast()));
  RT_RETURN_IF_ERROR(check.Fraction("saturation", config.saturation()));
  RT_RETURN_IF_ERROR(check.Fraction("erasing", config.erasing()));
  RT_RETURN_IF_ERROR(check.Fraction("ramp_start", config.ramp_start()));
  RT_RETURN_IF_ERROR(check.NotNegative("ramp_epochs", config.ramp_epochs()));
  if (config.has_mixup()) {
    RT_RETURN_IF_ERROR(CheckMix(config.mixup(), "0.2 is usual", check.Within("mixup")));
  }
  if (config.has_cutmix()) {
    RT_RETURN_IF_ERROR(CheckMix(config.cutmix(), "1 is usual", check.Within("cutmix")));
  }
  return check.Fraction("switch_probability", config.switch_probability());
}

Status CheckThreeOrNone(const FieldCheck& check, const char* field, int values) {
  if (values == 0 || values == 3) return OkStatus();
  return check.Error(
      field, fmt::format("{} has {} values; it must have 3 (R G B) or none", field, values));
}

Status CheckNormalization(const DataConfig& config, const FieldCheck& check) {
  constexpr double kMaxStd = 1000;
  RT_RETURN_IF_ERROR(CheckThreeOrNone(check, "mean", config.mean_size()));
  RT_RETURN_IF_ERROR(CheckThreeOrNone(check, "std", config.std_size()));
  for (int i = 0; i < config.mean_size(); ++i) {
    RT_RETURN_IF_ERROR(check.Between(fmt::format("mean[{}]", i), config.mean(i), 0, kMaxPixel));
  }
  for (int i = 0; i < config.std_size(); ++i) {
    RT_RETURN_IF_ERROR(check.PositiveUpTo(fmt::format("std[{}]", i), config.std(i), kMaxStd));
  }
  return OkStatus();
}

Status CheckBadImageLimits(const BadImagesConfig& config, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.Fraction("max_fraction", config.max_fraction()));
  RT_RETURN_IF_ERROR(check.Between("max_megapixels", config.max_megapixels(), 1, 1000));
  RT_RETURN_IF_ERROR(check.Between("max_side", config.max_side(), 1, 65535));
  return check.Between("max_file_mib", config.max_file_mib(), 1, 2047);
}

}  // namespace

Status ValidateDataConfig(const DataConfig& config, const ConfigSource* source,
                          const std::string& path) {
  const FieldCheck check(source, path);
  RT_RETURN_IF_ERROR(
      check.Between("image_size", config.image_size(), kMinImageSize, kMaxImageSize));
  RT_RETURN_IF_ERROR(CheckSplit(config.split(), check.Within("split")));
  RT_RETURN_IF_ERROR(CheckAugment(config.augment(), check.Within("augment")));
  RT_RETURN_IF_ERROR(check.Within("evaluation")
                         .PositiveFraction("crop_fraction", config.evaluation().crop_fraction()));
  RT_RETURN_IF_ERROR(CheckNormalization(config, check));
  RT_RETURN_IF_ERROR(check.Fraction("class_balance", config.class_balance()));
  RT_RETURN_IF_ERROR(check.Between("shards", config.shards(), 1, 65536));
  RT_RETURN_IF_ERROR(check.Between("workers", config.workers(), 0, 1024));
  RT_RETURN_IF_ERROR(check.Between("prefetch_batches", config.prefetch_batches(), 2, 64));
  RT_RETURN_IF_ERROR(check.Between("cache_mib", config.cache_mib(), 0, kMaxCacheMib));
  return CheckBadImageLimits(config.bad_images(), check.Within("bad_images"));
}

}  // namespace ringtail
