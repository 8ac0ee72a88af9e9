// Every field of data.proto: the defaults and the ends of each range are allowed,
// the next value beyond is not.
#include "data/config_check.h"
#include "core/config/text_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct Case {
  const char* text;   // a DataConfig
  const char* error;  // a part of the message; "": allowed
};

class DataConfigCheckTest : public testing::TestWithParam<Case> {};

TEST_P(DataConfigCheckTest, AcceptsOrExplains) {
  DataConfig config;
  ASSERT_TRUE(ParseTextConfig(GetParam().text, "data.textproto", &config, nullptr).ok());
  const Status status = ValidateDataConfig(config, nullptr, "data");
  if (*GetParam().error == '\0') {
    EXPECT_TRUE(status.ok()) << status.ToString();
  } else {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(GetParam().error));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fields, DataConfigCheckTest,
    testing::ValuesIn<Case>({
        {"", ""},
        {"image_size: 8", ""},
        {"image_size: 1024", ""},
        {"image_size: 7", "data.image_size: image_size is 7; it must be from 8 to 1024"},
        {"image_size: 1025", "data.image_size"},
        {"split { validation_fraction: 0 }", ""},
        {"split { validation_fraction: 1 }",
         "data.split.validation_fraction: validation_fraction is 1"},
        {"split { validation_fraction: -0.1 }", "data.split.validation_fraction"},
        {"split { validation_fraction: nan }",
         "data.split.validation_fraction: validation_fraction is nan"},
        {"split { folds: 5 fold: 4 }", ""},
        {"split { folds: 1 }", "data.split.folds: folds is 1"},
        {"split { folds: -2 }", "data.split.folds: folds is -2"},
        {"split { folds: 5 fold: 5 }", "data.split.fold: fold is 5"},
        {"split { fold: 1 }", "data.split.fold: fold is 1 without folds"},
        {"split { folds: 2 train { first: 0 last: 1 } validation { first: 2 last: 2 } }",
         "data.split.folds: folds divide all images"},
        {"split { train { first: 0 last: 1 } validation { first: 2 last: 2 } }", ""},
        {"split { train { first: 0 last: 1 } }", "data.split.train: split.train"},
        {"split { validation { first: 0 last: 1 } }", "data.split.validation: split.validation"},
        {"split { train { first: 0 last: 1 } validation { first: 1 last: 2 } }", "overlap"},
        {"split { train { first: 0 last: 1 } validation { first: 3 last: 2 } }",
         "data.split.validation.last: last is 2; it must be at least 3"},
        {"split { train { first: -1 last: 1 } validation { first: 2 last: 3 } }",
         "data.split.train.first: first is -1; it must be at least 0"},
        {"split { train { first: 0 } validation { first: 2 last: 3 } }",
         "data.split.train: last is missing"},
        {"split { train { last: 1 } validation { first: 2 last: 3 } }",
         "data.split.train: first is missing"},
        {"augment { min_area: 1 max_area: 1 }", ""},
        {"augment { min_area: 0 }", "data.augment.min_area: min_area is 0"},
        {"augment { min_area: nan }", "data.augment.min_area: min_area is nan"},
        {"augment { max_area: 1.01 }", "data.augment.max_area"},
        {"augment { min_area: 0.5 max_area: 0.4 }",
         "min_area is 0.5; it must be at most max_area, which is 0.4"},
        {"augment { min_aspect: 0.1 max_aspect: 10 }", ""},
        {"augment { min_aspect: 0.09 }", "data.augment.min_aspect"},
        {"augment { max_aspect: 10.1 }", "data.augment.max_aspect"},
        {"augment { min_aspect: 2 max_aspect: 1 }",
         "min_aspect is 2; it must be at most max_aspect, which is 1"},
        {"augment { flip_probability: 1 brightness: 1 contrast: 1 saturation: 1 }", ""},
        {"augment { trivial_augment: BILINEAR erasing: 1 }", ""},
        {"augment { mixup { alpha: 0 } cutmix { alpha: 100 } switch_probability: 1 }", ""},
        {"augment { mixup {} }", "data.augment.mixup: alpha is missing; 0.2 is usual, 0 is off"},
        {"augment { cutmix {} }", "data.augment.cutmix: alpha is missing; 1 is usual"},
        {"augment { switch_probability: 0 }", ""},
        {"augment { mixup { alpha: -1 } }",
         "data.augment.mixup.alpha: alpha is -1; it must be from 0 to 100"},
        {"augment { cutmix { alpha: 101 } }", "data.augment.cutmix.alpha"},
        {"augment { switch_probability: 1.1 }", "data.augment.switch_probability"},
        {"class_balance: 1", ""},
        {"class_balance: 1.1", "data.class_balance: class_balance is 1.1; it must be from 0 to 1"},
        {"class_balance: -0.1", "data.class_balance"},
        {"shards: 8", ""},
        {"shards: 0", "data.shards: shards is 0; it must be from 1 to 65536"},
        {"augment { erasing: 1.1 }", "data.augment.erasing: erasing is 1.1"},
        {"augment { erasing: -0.1 }", "data.augment.erasing"},
        {"augment { ramp_start: 1.5 }", "data.augment.ramp_start: ramp_start is 1.5"},
        {"augment { ramp_epochs: -1 }", "data.augment.ramp_epochs"},
        {"augment { flip_probability: 1.1 }", "data.augment.flip_probability"},
        {"augment { flip_probability: -0.1 }", "data.augment.flip_probability"},
        {"augment { brightness: 1.1 }", "data.augment.brightness"},
        {"augment { contrast: -1 }", "data.augment.contrast"},
        {"augment { saturation: inf }", "data.augment.saturation: saturation is inf"},
        {"evaluation { crop_fraction: 1 }", ""},
        {"evaluation { crop_fraction: 0 }", "data.evaluation.crop_fraction"},
        {"evaluation { crop_fraction: 1.1 }", "data.evaluation.crop_fraction"},
        {"mean: [0, 128, 255] std: [1, 0.001, 1000]", ""},
        {"mean: [1, 2]", "data.mean: mean has 2 values"},
        {"std: [1, 2, 3, 4]", "data.std: std has 4 values"},
        {"mean: [0, 0, 256]", "data.mean[2]: mean[2] is 256"},
        {"std: [1, 0, 1]", "data.std[1]: std[1] is 0"},
        {"std: [nan, 1, 1]", "data.std[0]: std[0] is nan"},
        {"workers: 0", ""},
        {"workers: -1", "data.workers"},
        {"workers: 1025", "data.workers"},
        {"prefetch_batches: 2", ""},
        {"prefetch_batches: 1",
         "data.prefetch_batches: prefetch_batches is 1; it must be from 2 to 64"},
        {"prefetch_batches: 65", "data.prefetch_batches"},
        {"cache_mib: 0", ""},
        {"cache_mib: -1", "data.cache_mib"},
        {"cache_mib: 9223372036854775807", "data.cache_mib"},
        {"bad_images { max_fraction: 0 }", ""},
        {"bad_images { max_fraction: 1.1 }", "data.bad_images.max_fraction"},
        {"bad_images { max_megapixels: 0 }", "data.bad_images.max_megapixels"},
        {"bad_images { max_side: 65536 }", "data.bad_images.max_side"},
        {"bad_images { max_file_mib: 2047 }", ""},
        {"bad_images { max_file_mib: 2048 }", "data.bad_images.max_file_mib"},
    }));

TEST(DataConfigCheckWithSourceTest, PointsAtThePlace) {
  DataConfig config;
  ConfigSource source;
  const char* text = "image_size: 64\naugment {\n  min_area: 2\n}\n";
  ASSERT_TRUE(ParseTextConfig(text, "pets.textproto", &config, &source).ok());
  const Status status = ValidateDataConfig(config, &source, "");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(StartsWith("pets.textproto:3:"),
                                      HasSubstr("min_area is 2; it must be greater than 0")));
}

}  // namespace
}  // namespace ringtail
