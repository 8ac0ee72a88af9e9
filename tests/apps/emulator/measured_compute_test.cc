// What a script that says nothing of compute gets: the job measures it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/emulator/tiny_emulation.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

StatusOr<ComputeScript> Measured(const Overrides& overrides) {
  const LoadedConfig loaded = TinyConfig(overrides);
  TrainingWorld alone;
  RT_ASSIGN_OR_RETURN(const TrainingData data, TrainingData::Open(loaded.config.data(), &alone));
  RT_ASSIGN_OR_RETURN(const auto job,
                      EmulatedJob::Create(&loaded, &data, TinyScript("workers: 2")));
  return job->compute();
}

// Steps until the second epoch, then rounds: what either exchanges may be coded.
Overrides PostLocal(const Overrides& more) {
  Overrides all = {"train.batch=4", "dist.local.period=3", "dist.local.start_epoch=1",
                   "dist.compression.min_elements=100", "dist.local.compression.min_elements=100"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(MeasuredComputeTest, GradientsOrDifferencesOfPostLocalRunsAreCoded) {
  const std::string gradients = "dist.compression.scheme.linear8={}";
  const std::string differences = "dist.local.compression.scheme.linear8={}";
  for (const Overrides& coded :
       {Overrides{gradients}, Overrides{differences}, Overrides{gradients, differences}}) {
    const ComputeScript compute = Measured(PostLocal(coded)).value();
    EXPECT_GT(compute.ms_per_image(), 0);
    EXPECT_GT(compute.round_ms(), 0);
    EXPECT_GT(compute.encode_ms(), 0) << coded[0];
    EXPECT_GT(compute.decode_ms(), 0) << coded[0];
  }
}

TEST(MeasuredComputeTest, OneCostOfCodingIsNotThatOfTwoCodecs) {
  const Overrides two =
      PostLocal({"dist.compression.scheme.linear8={}", "dist.local.compression.scheme.two_bit={}"});
  EXPECT_THAT(Measured(two).status().message(), HasSubstr("coded in two ways"));
}

}  // namespace
}  // namespace ringtail
