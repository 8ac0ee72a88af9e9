// What is said of a pipeline's times, by hand.
#include "apps/trainer/pipeline/stage_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Two equal stages, two micro-batches, messages that take no time: 3 (1 + 2) of 2 (1 + 2) seconds.
TEST(StageReportTest, ComparesWithTheSchedule) {
  const PipelineShape shape{.stages = 2, .micro_batches = 2};
  StageTraffic traffic;
  traffic.boundaries = {{}};
  const StageTimes times{.forward_s = {2, 2}, .backward_s = {4, 4}, .waited_s = {3.375, 4}};
  EXPECT_THAT(
      CompareWithSchedule(shape, traffic, 20, times),
      AllOf(HasSubstr("20 steps: forward and backward took 9375.0 ms each"),
            HasSubstr("measured times of stages: 9000.0 ms (-4 %)"),
            HasSubstr("ranks wait for 38.0 % of it (the schedule: 33.3 %; equal stages: 33.3 %)")));
}

}  // namespace
}  // namespace ringtail
