#include "data/validate.h"

#include <fmt/format.h>

#include <string>

#include "data/split.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxCacheMib = int64_t{16} << 20;  // 16 TiB
constexpr float kMaxPixel = 255;

// Looks at one field after the other and keeps the first error.
class Validator {
 public:
  Validator(const ConfigSource* source, std::string_view path) : source_(source), path_(path) {}

  void Require(bool condition, std::string_view field, std::string_view message) {
    if (condition || !status_.ok()) return;
    const std::string field_path =
        path_.empty() ? std::string(field) : fmt::format("{}.{}", path_, field);
    const std::string text = fmt::format("{} {}", field_path, message);
    status_ = source_ != nullptr ? source_->Error(field_path, text) : InvalidArgument(text);
  }

  // NaN is in no range.
  template <typename T>
  void InRange(T value, T low, T high, std::string_view field) {
    Require(value >= low && value <= high, field,
            fmt::format("is {}, allowed is {} .. {}", value, low, high));
  }
  template <typename T>
  void AboveUpTo(T value, T low, T high, std::string_view field) {
    Require(value > low && value <= high, field,
            fmt::format("is {}, allowed is above {} and at most {}", value, low, high));
  }

  const Status& status() const { return status_; }

 private:
  const ConfigSource* source_;
  std::string path_;
  Status status_;
};

void CheckSplit(const SplitConfig& config, Validator* check) {
  const double fraction = config.validation_fraction();
  check->Require(fraction >= 0 && fraction < 1, "split.validation_fraction",
                 fmt::format("is {}, allowed is at least 0 and below 1", fraction));
  const Status ranges = CheckNumberRanges(config);
  check->Require(ranges.ok(), config.has_validation() ? "split.validation" : "split.train",
                 "is wrong: " + ranges.message());
}

void CheckAugment(const AugmentConfig& config, Validator* check) {
  constexpr float kMinAspect = 0.1F, kMaxAspect = 10;
  check->AboveUpTo(config.min_area(), 0.0F, 1.0F, "augment.min_area");
  check->AboveUpTo(config.max_area(), 0.0F, 1.0F, "augment.max_area");
  check->Require(config.min_area() <= config.max_area(), "augment.min_area",
                 fmt::format("is {}, above augment.max_area, which is {}", config.min_area(),
                             config.max_area()));
  check->InRange(config.min_aspect(), kMinAspect, kMaxAspect, "augment.min_aspect");
  check->InRange(config.max_aspect(), kMinAspect, kMaxAspect, "augment.max_aspect");
  check->Require(config.min_aspect() <= config.max_aspect(), "augment.min_aspect",
                 fmt::format("is {}, above augment.max_aspect, which is {}", config.min_aspect(),
                             config.max_aspect()));
  check->InRange(config.flip_probability(), 0.0F, 1.0F, "augment.flip_probability");
  check->InRange(config.brightness(), 0.0F, 1.0F, "augment.brightness");
  check->InRange(config.contrast(), 0.0F, 1.0F, "augment.contrast");
  check->InRange(config.saturation(), 0.0F, 1.0F, "augment.saturation");
}

void CheckNormalization(const DataConfig& config, Validator* check) {
  constexpr float kMaxStd = 1000;
  check->Require(config.mean_size() == 0 || config.mean_size() == 3, "mean",
                 fmt::format("has {} values, it needs 3 (R G B) or none", config.mean_size()));
  check->Require(config.std_size() == 0 || config.std_size() == 3, "std",
                 fmt::format("has {} values, it needs 3 (R G B) or none", config.std_size()));
  for (int i = 0; i < config.mean_size(); ++i) {
    check->InRange(config.mean(i), 0.0F, kMaxPixel, fmt::format("mean[{}]", i));
  }
  for (int i = 0; i < config.std_size(); ++i) {
    check->AboveUpTo(config.std(i), 0.0F, kMaxStd, fmt::format("std[{}]", i));
  }
}

void CheckBadPictures(const BadPicturesConfig& config, Validator* check) {
  check->InRange(config.max_fraction(), 0.0, 1.0, "bad_pictures.max_fraction");
  check->InRange(config.max_megapixels(), 1, 1000, "bad_pictures.max_megapixels");
  check->InRange(config.max_side(), 1, 65535, "bad_pictures.max_side");
  check->InRange(config.max_file_mib(), 1, 2047, "bad_pictures.max_file_mib");
}

}  // namespace

Status ValidateDataConfig(const DataConfig& config, const ConfigSource* source,
                          std::string_view path) {
  Validator check(source, path);
  check.InRange(config.image_size(), 8, 1024, "image_size");
  CheckSplit(config.split(), &check);
  CheckAugment(config.augment(), &check);
  check.AboveUpTo(config.evaluation().crop_fraction(), 0.0F, 1.0F, "evaluation.crop_fraction");
  CheckNormalization(config, &check);
  check.InRange(config.workers(), 0, 1024, "workers");
  check.InRange(config.prefetch_batches(), 2, 64, "prefetch_batches");
  check.InRange<int64_t>(config.cache_mib(), 0, kMaxCacheMib, "cache_mib");
  CheckBadPictures(config.bad_pictures(), &check);
  return check.status();
}

}  // namespace ringtail
