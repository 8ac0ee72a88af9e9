// The sizes of images for training and evaluation, as a config gives them.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/run.pb.h"

namespace ringtail {
namespace {

RunConfig TwoPhases() {
  RunConfig config;
  config.mutable_data()->set_image_size(64);
  auto* phase = config.mutable_train()->add_phase();
  phase->set_from_epoch(3), phase->set_image_size(96);
  return config;
}

TEST(ImageSizesTest, EvaluationTakesTheSizeOfThePhase) {
  const RunConfig config = TwoPhases();
  EXPECT_EQ(TrainingImageSizes(config), (std::vector<int64_t>{64, 96}));
  EXPECT_EQ(EvaluationImageSize(config, 64), 64);
  EXPECT_EQ(EvaluationImageSize(config, 96), 96);
}

TEST(ImageSizesTest, EvaluationScalesTheSizeOfThePhase) {
  RunConfig config = TwoPhases();
  config.mutable_train()->set_evaluation_image_scale(1.125);
  EXPECT_EQ(EvaluationImageSize(config, 64), 72);
  EXPECT_EQ(EvaluationImageSize(config, 96), 108);
  EXPECT_EQ(EvaluationImageSize(config, 100), 113) << "112.5, to the nearest pixel";
}

TEST(ImageSizesTest, AFixedEvaluationSizeComesFirst) {
  RunConfig config = TwoPhases();
  config.mutable_train()->set_evaluation_image_scale(1.125);
  config.mutable_train()->set_evaluation_image_size(128);
  EXPECT_EQ(EvaluationImageSize(config, 64), 128);
  EXPECT_EQ(EvaluationImageSize(config, 96), 128);
}

}  // namespace
}  // namespace ringtail
