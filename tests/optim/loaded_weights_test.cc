#include "optim/loaded_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Of a run whose batch does not scale the rate.
std::string WarningOf(const std::string& optim) {
  const OptimConfig config = ParseOptim(optim);
  return WarnOfErasing(config, config.learning_rate());
}

TEST(LoadedWeightsTest, RatesForTrainingFromScratchAreNamed) {
  EXPECT_THAT(WarningOf("muon {} learning_rate: 1.4"),
              HasSubstr("at a learning rate of 1.4 the weights that were loaded are soon erased; "
                        "try --set optim.learning_rate=0.22"));
  EXPECT_THAT(WarningOf("sgd {} learning_rate: 0.1"), HasSubstr("optim.learning_rate=0.015"));
  EXPECT_THAT(WarningOf("adam {} learning_rate: 0.1"), HasSubstr("optim.learning_rate=0.00045"));
  EXPECT_THAT(WarningOf("lamb {} learning_rate: 0.02"), HasSubstr("optim.learning_rate=0.0045"));
  EXPECT_THAT(WarningOf("lars {} learning_rate: 20"), HasSubstr("optim.learning_rate=4.5"));
}

TEST(LoadedWeightsTest, LowRatesAreNot) {
  EXPECT_THAT(WarningOf("muon {} learning_rate: 0.7"), IsEmpty());
  EXPECT_THAT(WarningOf("sgd {} learning_rate: 0.01"), IsEmpty());
  EXPECT_THAT(WarningOf("adamw {} learning_rate: 1e-3"), IsEmpty());
}

// What is to be set is scaled again.
TEST(LoadedWeightsTest, RatesAreNamedAsTheConfigHasThem) {
  const OptimConfig at_batch_64 = ParseOptim("muon {} learning_rate: 1.5");
  EXPECT_THAT(WarnOfErasing(at_batch_64, /*configured_rate=*/3),
              HasSubstr("at a learning rate of 1.5 the weights that were loaded are soon erased; "
                        "try --set optim.learning_rate=0.45"));
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
  EXPECT_EQ(WarnOfOtherRulesRate(config, config.learning_rate()), "");
  config.mutable_adamw();
  EXPECT_THAT(WarnOfOtherRulesRate(config, config.learning_rate()),
              testing::HasSubstr("adamw at a learning rate of 1.4"));
  config.set_learning_rate(0.01);
  EXPECT_EQ(WarnOfOtherRulesRate(config, config.learning_rate()), "");
}

TEST(OtherRulesRateTest, SgdAtTheRateOfMuon) {
  EXPECT_THAT(WarnOfOtherRulesRate(ParseOptim("sgd { momentum: 0.9 }"), 1.2),
              HasSubstr("sgd with a momentum of 0.9 at a learning rate of 1.2"));
  EXPECT_EQ(WarnOfOtherRulesRate(ParseOptim("sgd { momentum: 0.9 }"), 0.8), "");
  EXPECT_EQ(WarnOfOtherRulesRate(ParseOptim("sgd { momentum: 0 }"), 1.2), "");
  EXPECT_EQ(WarnOfOtherRulesRate(ParseOptim("muon {}"), 1.2), "");
}

}  // namespace
}  // namespace ringtail
