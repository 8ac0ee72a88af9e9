#include "apps/trainer/update/bf16_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/apps/tiny_run.h"
#include "tests/apps/trainer/thread_world.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

// What each of three ranks takes; `fast`: on which of them products of bf16 are.
std::vector<int> Taken(const std::vector<std::string>& config, const std::vector<int>& fast) {
  const RunConfig run = TinyConfig(config).config;
  std::vector<int> taken(fast.size());
  OnTrainingRanks(static_cast<int>(fast.size()), [&](TrainingWorld* world) {
    const auto agreed = AgreeOnBf16Products(fast[world->rank()] != 0, run, world);
    ASSERT_TRUE(agreed.ok()) << agreed.status().message();
    taken[world->rank()] = *agreed ? 1 : 0;
  });
  return taken;
}

TEST(Bf16AgreementTest, AllRanksTakeThemOrNone) {
  CaptureStderr();
  EXPECT_THAT(Taken({"optim.muon={}"}, {1, 1, 1}), ElementsAre(1, 1, 1));
  EXPECT_THAT(Taken({"optim.muon={}"}, {0, 0, 0}), ElementsAre(0, 0, 0));
  EXPECT_EQ(GetCapturedStderr(), "");
  for (const auto& fast : {std::vector<int>{1, 0, 1}, {1, 1, 0}, {0, 1, 1}}) {
    EXPECT_THAT(Taken({"optim.muon={}"}, fast), ElementsAre(0, 0, 0));
    // Servers, of which some have the copies of others.
    EXPECT_THAT(Taken({"optim.muon={}", "dist.asynchronous.rule=STALE_SYNC"}, fast),
                ElementsAre(0, 0, 0));
  }
}

TEST(Bf16AgreementTest, TheFirstRankSaysWhoHasToDoWithout) {
  CaptureStderr();
  Taken({"optim.muon={}"}, {1, 0, 1});
  const std::string log = GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("optim.muon.matrices: f32 on all ranks, as products of bf16 are not "
                             "fast on rank 1"));
  EXPECT_THAT(log, HasSubstr("2 ranks could have taken bf16\n"));
  EXPECT_EQ(log.find('\n'), log.size() - 1) << log;
}

// Their updates need not be the same, or are it anyway.
TEST(Bf16AgreementTest, RanksWithStepsOfTheirOwnDoAsTheyCan) {
  const auto taken = [](const std::vector<std::string>& more) {
    std::vector<std::string> config = {"optim.muon={}"};
    config.insert(config.end(), more.begin(), more.end());
    return Taken(config, {1, 0, 1});
  };
  EXPECT_THAT(taken({"dist.local.period=4"}), ElementsAre(1, 0, 1));
  EXPECT_THAT(taken({"dist.local.period=4", "dist.local.start_epoch=1"}), ElementsAre(0, 0, 0));
  CaptureStderr();
  EXPECT_THAT(taken({"optim.muon.matrices=F32"}), ElementsAre(1, 0, 1));
  EXPECT_THAT(Taken({}, {1, 0, 1}), ElementsAre(1, 0, 1));
  EXPECT_EQ(GetCapturedStderr(), "");
}

}  // namespace
}  // namespace ringtail
