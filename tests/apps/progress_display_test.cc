#include "apps/dogs_vs_cats/progress_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/storage/file.h"
#include "layers/convolution/measuring_notice.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

const ProgressView kView = {.epoch = 1.5,
                            .total_epochs = 3,
                            .step = 15,
                            .total_steps = 30,
                            .loss = 0.3412,
                            .accuracy = 0.8671,
                            .images_per_s = 1180.4,
                            .seconds_left = 754};

TEST(ProgressTest, TheBarTakesTheRemainingColumns) {
  const std::string numbers =
      "epoch 1.50/3  step 15/30  loss 0.341  accuracy 86.7 %  1180 img/s  12:34 left";
  EXPECT_EQ(ProgressBarLine(kView, static_cast<int>(numbers.size()) + 13),
            "[=====>    ] " + numbers);
  for (int width = 0; width < 200; ++width) {
    EXPECT_LE(ProgressBarLine(kView, width).size(), static_cast<size_t>(width));
  }
}

TEST(ProgressTest, ANarrowTerminalGetsTheTime) {
  const std::string start = "epoch 1.50/3  loss 0.341  accuracy 86.7 %  ";
  EXPECT_EQ(ProgressBarLine(kView, 79), "[=====>     ] " + start + "1180 img/s  12:34 left");
  EXPECT_EQ(ProgressBarLine(kView, 60), start + "12:34 left");
  EXPECT_EQ(ProgressBarLine(kView, 44), "[========>        ] epoch 1.50/3  12:34 left");
}

TEST(ProgressTest, TheAccuracyOfMixedImagesIsCalledSo) {
  ProgressView view = kView;
  EXPECT_THAT(ProgressPlainLine(view), testing::HasSubstr("loss 0.341  accuracy 86.7 %"));
  view.mixed = true;
  EXPECT_THAT(ProgressPlainLine(view),
              testing::HasSubstr("loss 0.341  mixed images: accuracy 86.7 %"));
}

TEST(ProgressTest, TheFinishedBarIsFull) {
  ProgressView view = kView;
  view.step = 30;
  EXPECT_THAT(ProgressBarLine(view, 100), testing::HasSubstr("=] "));
  EXPECT_THAT(ProgressBarLine(view, 100), testing::Not(testing::HasSubstr(">")));
}

TEST(ProgressTest, ClockText) {
  EXPECT_EQ(ClockText(-1), "0 s");
  EXPECT_EQ(ClockText(59.4), "59 s");
  EXPECT_EQ(ClockText(60), "1:00");
  EXPECT_EQ(ClockText(3599.6), "1:00:00");
  EXPECT_EQ(ClockText(3723), "1:02:03");
}

Metrics Step(int64_t step, double loss) {
  Metrics metrics;
  metrics.step = step;
  metrics.epoch = static_cast<double>(step) / 10;
  metrics.loss = loss;
  metrics.accuracy = 0.5;
  metrics.images_per_s = 100;
  metrics.step_ms = 10000;
  return metrics;
}

TEST(ProgressTest, AFileGetsALinePerIntervalAndOneAtTheEnd) {
  const TempDir folder;
  RunConfig config;
  config.mutable_train()->set_epochs(0.5);
  config.mutable_train()->add_phase()->set_from_epoch(0.4);
  config.mutable_train()->mutable_phase(0)->set_image_size(2 * config.data().image_size());
  const TrainingPlan plan(config, 10);
  FILE* file = std::fopen(folder.File("log").c_str(), "w");
  {
    ProgressDisplay progress(file, 2);
    for (int64_t step = 1; step <= 5; ++step)
      progress.OnStep(Step(step, static_cast<double>(step)), plan);
    Metrics evaluation = Step(5, 0.25);
    evaluation.kind = Metrics::Kind::kEvaluation;
    progress.OnEvaluation(evaluation, true);
  }
  std::fclose(file);
  const std::string text = ReadFileText(folder.File("log"), 1 << 20).value();
  EXPECT_EQ(text,
            "epoch 0.20/0.5  step 2/5  loss 1.500  accuracy 50.0 %  100 img/s  1:00 left\n"
            "epoch 0.40/0.5  step 4/5  loss 3.500  accuracy 50.0 %  100 img/s  40 s left\n"
            "epoch 0.50/0.5  step 5/5  loss 5.000  accuracy 50.0 %  100 img/s  0 s left\n"
            "epoch 0.50  step 5  training loss 3.0000  validation: loss 0.2500  accuracy 50.00 %  "
            "(best so far)\n");
}

TEST(ProgressTest, AFileIsToldOnceOfMeasuring) {
  const TempDir folder;
  FILE* file = std::fopen(folder.File("log").c_str(), "w");
  {
    ProgressDisplay progress(file, 2);
    const MeasuringShown shown(&progress);
    NoticeMeasured();
    NoticeMeasured();
  }
  NoticeMeasured();  // no one is told any more
  std::fclose(file);
  EXPECT_EQ(ReadFileText(folder.File("log"), 1 << 20).value(),
            "measuring convolutions (once; kept in the cache)\n");
}

}  // namespace
}  // namespace ringtail
