#include "optim/loaded_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string WarningOf(const std::string& optim) { return WarnOfErasing(ParseOptim(optim)); }

TEST(LoadedWeightsTest, RatesForTrainingFromScratchAreNamed) {
  EXPECT_THAT(WarningOf("muon {} learning_rate: 1.4"),
              HasSubstr("at a learning rate of 1.4 the weights that were loaded are soon erased; "
                        "try --set optim.learning_rate=0.075"));
  EXPECT_THAT(WarningOf("sgd {} learning_rate: 0.1"), HasSubstr("optim.learning_rate=0.015"));
  EXPECT_THAT(WarningOf("adam {} learning_rate: 0.1"), HasSubstr("optim.learning_rate=0.00045"));
  EXPECT_THAT(WarningOf("lamb {} learning_rate: 0.02"), HasSubstr("optim.learning_rate=0.0015"));
  EXPECT_THAT(WarningOf("lars {} learning_rate: 10"), HasSubstr("optim.learning_rate=1.5"));
}

TEST(LoadedWeightsTest, LowRatesAreNot) {
  EXPECT_THAT(WarningOf("muon {} learning_rate: 0.1"), IsEmpty());
  EXPECT_THAT(WarningOf("sgd {} learning_rate: 0.01"), IsEmpty());
  EXPECT_THAT(WarningOf("adamw {} learning_rate: 1e-3"), IsEmpty());
}

// Only the head moves at the full rate.
TEST(LoadedWeightsTest, RatesByDepthCount) {
  EXPECT_THAT(WarningOf("adamw {} learning_rate: 4e-3 layer_decay: 0.3"), IsEmpty());
  EXPECT_THAT(WarningOf("adamw {} learning_rate: 4e-2 layer_decay: 0.5"),
              HasSubstr("optim.learning_rate=0.0009"));
}

TEST(OtherRulesRateTest, OnlyAdamAtTheRateOfAnother) {
  OptimConfig config;
  config.set_learning_rate(1.4);
  config.mutable_muon();
  EXPECT_EQ(WarnOfOtherRulesRate(config), "");
  config.mutable_adamw();
  EXPECT_THAT(WarnOfOtherRulesRate(config), testing::HasSubstr("adamw at a learning rate of 1.4"));
  config.set_learning_rate(0.01);
  EXPECT_EQ(WarnOfOtherRulesRate(config), "");
}

}  // namespace
}  // namespace ringtail
