#include "dist/parameter_server/staleness_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using testing::ElementsAre;

TEST(StalenessStatisticsTest, AsDrawn) {
  StalenessStatistics statistics;
  EXPECT_EQ(statistics.Mean(), 0);
  EXPECT_EQ(statistics.Quantile(0.95), 0);
  for (const int64_t tau : {0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3}) statistics.Add(tau);
  EXPECT_THAT(statistics.histogram(), ElementsAre(1, 1, 1, 9));
  EXPECT_EQ(statistics.count(), 12);
  EXPECT_DOUBLE_EQ(statistics.Mean(), 2.5);
  EXPECT_EQ(statistics.Quantile(0.95), 3);
  EXPECT_EQ(statistics.Quantile(0.25), 2);
  EXPECT_EQ(statistics.max(), 3);
}

TEST(StalenessStatisticsTest, AVeryOldPushTakesNoMemory) {
  StalenessStatistics statistics;
  statistics.Add(int64_t{1} << 60);
  statistics.Add(0);
  EXPECT_EQ(statistics.histogram().size(), StalenessStatistics::kMostCounted + 1U);
  EXPECT_EQ(statistics.histogram().back(), 1);
  EXPECT_EQ(statistics.max(), int64_t{1} << 60);
  EXPECT_EQ(statistics.Quantile(1), StalenessStatistics::kMostCounted);
}

}  // namespace
}  // namespace ringtail
