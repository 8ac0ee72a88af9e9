#include "core/machine/core_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using testing::StartsWith;

constexpr double kInterval = 0.05;

// `seconds` of equal intervals; delays, other work and what a quota takes as fractions of the time
// (of one core).
void Live(CoreSharing* sharing, double seconds, double delayed, double others, double held = 0) {
  for (double t = 0; t < seconds; t += kInterval) {
    sharing->Update({.elapsed = kInterval,
                     .delay = delayed * kInterval,
                     .others = others * kInterval,
                     .held = held * kInterval});
  }
}

TEST(CoreSharing, QuietCoresAreNotShared) {
  CoreSharing sharing(2);
  Live(&sharing, 60, 0.01, 0.02);
  EXPECT_FALSE(sharing.delayed());
  EXPECT_FALSE(sharing.Notice());
}

TEST(CoreSharing, IsDelayedSoonAndForSomeTimeAfterwards) {
  CoreSharing sharing(2);
  Live(&sharing, 1, 0, 0);
  Live(&sharing, CoreSharing::kMemory, 0.3, 0.5);
  EXPECT_TRUE(sharing.delayed());
  Live(&sharing, CoreSharing::kCalm, 0, 0);
  EXPECT_TRUE(sharing.delayed()) << "a quiet moment is no quiet machine";
  Live(&sharing, 4 * CoreSharing::kMemory, 0, 0);
  EXPECT_FALSE(sharing.delayed());
}

TEST(CoreSharing, OneTimeSliceOfAnotherThreadDoesNotCount) {
  CoreSharing sharing(2);
  for (int i = 0; i < 20; ++i) {
    Live(&sharing, 1, 0, 0);
    Live(&sharing, kInterval, 0.1, 0.1);
    EXPECT_FALSE(sharing.delayed());
  }
}

TEST(CoreSharing, TheLoaderDelaysButIsNotAnotherProgram) {
  CoreSharing sharing(2);
  Live(&sharing, 30, 0.3, 0.02);
  EXPECT_TRUE(sharing.delayed());
  EXPECT_FALSE(sharing.Notice());
}

TEST(CoreSharing, HarmlessProgramsAreNotReported) {
  CoreSharing sharing(8);
  Live(&sharing, 30, 0.01, 4);
  EXPECT_FALSE(sharing.Notice()) << "half of the cores is at work for others, but no thread waits";
}

TEST(CoreSharing, ReportsOtherProgramsOnce) {
  CoreSharing sharing(2);
  Live(&sharing, CoreSharing::kNoticeAfter - 1, 0.3, 0.62);
  EXPECT_FALSE(sharing.Notice()) << "too early to say";
  Live(&sharing, 2, 0.3, 0.62);
  const auto notice = sharing.Notice();
  ASSERT_TRUE(notice);
  EXPECT_NE(notice->find("31 %"), std::string::npos) << *notice;
  Live(&sharing, 60, 0.3, 0.62);
  EXPECT_FALSE(sharing.Notice());
}

// In a container with 1.5 of a host's 8 cores, others work on the rest, which it could not use.
TEST(CoreSharing, NamesAQuotaThatHoldsThreads) {
  CoreSharing sharing(8, 1.5);
  Live(&sharing, CoreSharing::kNoticeAfter + 1, 0.3, 4, 0.5);
  const auto notice = sharing.Notice();
  ASSERT_TRUE(notice);
  EXPECT_THAT(*notice, StartsWith("this process may use 1.5 cores (CPU quota of its control group)"
                                  ", which has stopped its threads for 5.0 s"));
}

TEST(CoreSharing, AQuotaThatHoldsNoThreadIsNotTheReason) {
  CoreSharing sharing(8, 4);
  Live(&sharing, CoreSharing::kNoticeAfter + 1, 0.3, 4, 0.01);
  const auto notice = sharing.Notice();
  ASSERT_TRUE(notice);
  EXPECT_THAT(*notice, StartsWith("the cores are shared: 50 %"));
}

}  // namespace
}  // namespace ringtail
