#include "apps/parameter_server/server_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/text_config.h"
#include "dist/parameter_server/rule_choice.h"

namespace ringtail {
namespace {

OptimConfig Optim(const std::string& text) {
  OptimConfig config;
  EXPECT_TRUE(ParseTextConfig(text, "optim", &config, nullptr).ok());
  return config;
}

OptimConfig Corrected(const std::string& optim, const std::string& rule, int workers) {
  AsynchronousConfig config;
  EXPECT_TRUE(ParseTextConfig(rule, "rule", &config, nullptr).ok());
  return ServerOptimizer(Optim(optim), config, RuleOf(config), workers);
}

constexpr char kAsynchronous[] = "rule: ASYNCHRONOUS overlap: false";

// Four pushes are under way: 1 - 4 (1 - 0.9) = 0.6; a gradient still moves by 10 rates in all.
TEST(ServerOptimizerTest, SgdKeepsWhatAGradientMovesInAll) {
  const OptimConfig four = Corrected("learning_rate: 0.1 sgd { momentum: 0.9 }", kAsynchronous, 4);
  EXPECT_NEAR(four.sgd().momentum(), 0.6, 1e-12);
  EXPECT_NEAR(four.learning_rate(), 0.4, 1e-12);
  const OptimConfig many =
      Corrected("learning_rate: 0.1 sgd { momentum: 0.9 nesterov: true }", kAsynchronous, 16);
  EXPECT_EQ(many.sgd().momentum(), 0);
  EXPECT_FALSE(many.sgd().nesterov());
  EXPECT_NEAR(many.learning_rate(), 1, 1e-12);
}

// Weights are a gradient older: 1 - 8 (1 - 0.9) = 0.2.
TEST(ServerOptimizerTest, WhoPullsAheadHasTwiceAsManyUnderWay) {
  const OptimConfig four =
      Corrected("learning_rate: 0.1 sgd { momentum: 0.9 }", "rule: ASYNCHRONOUS", 4);
  EXPECT_NEAR(four.sgd().momentum(), 0.2, 1e-12);
  EXPECT_NEAR(four.learning_rate(), 0.8, 1e-12);
}

TEST(ServerOptimizerTest, MuonAndLarsHaveStepsOfTheirOwnLength) {
  for (const char* rule : {"muon { momentum: 0.9 }", "lars { momentum: 0.9 }"}) {
    const OptimConfig four = Corrected(std::string("learning_rate: 1.4 ") + rule, kAsynchronous, 4);
    EXPECT_NEAR(four.has_muon() ? four.muon().momentum() : four.lars().momentum(), 0.6, 1e-12);
    EXPECT_EQ(four.learning_rate(), 1.4);
  }
}

TEST(ServerOptimizerTest, NothingChangesForOneOrForAllOrAsPublished) {
  const std::string sgd = "learning_rate: 0.1 sgd { momentum: 0.9 nesterov: true }";
  for (const auto& [rule, workers] :
       {std::pair(kAsynchronous, 1), std::pair("rule: SYNCHRONOUS", 8),
        std::pair("rule: ASYNCHRONOUS as_published: true", 8)}) {
    const OptimConfig same = Corrected(sgd, rule, workers);
    EXPECT_EQ(same.SerializeAsString(), Optim(sgd).SerializeAsString()) << rule;
  }
  const std::string adam = "learning_rate: 0.1 adam {}";
  EXPECT_EQ(Corrected(adam, kAsynchronous, 8).SerializeAsString(), Optim(adam).SerializeAsString());
}

TEST(ServerOptimizerTest, DanaHasTheMomentumItself) {
  AsynchronousConfig config;
  config.set_rule(AsynchronousConfig::DANA);
  EXPECT_FALSE(CheckServerOptimizer(RuleOf(config), Optim("sgd { momentum: 0.9 }")).ok());
  EXPECT_FALSE(CheckServerOptimizer(RuleOf(config), Optim("adam {}")).ok());
  EXPECT_TRUE(CheckServerOptimizer(RuleOf(config), Optim("sgd { momentum: 0 }")).ok());
}

}  // namespace
}  // namespace ringtail
