// Which ways for ranks to train together exclude each other.
#include "dist/config_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/config/config_override.h"
#include "core/config/text_config.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  DistConfig config;
  EXPECT_TRUE(ParseTextConfig(text, "test", &config, nullptr).ok()) << text;
  return std::string(ValidateDistConfig(config, nullptr).message());
}

TEST(DistConfigCheckTest, ServersByThemselvesAreFine) {
  EXPECT_EQ(ErrorOf("asynchronous { rule: ASYNCHRONOUS }"), "");
  EXPECT_EQ(ErrorOf("asynchronous { rule: STALE_SYNC bound: 5 servers: 2 overlap: false }"), "");
  EXPECT_EQ(ErrorOf("asynchronous { rule: ASYNCHRONOUS } compression { scheme { top_k {} } }"), "");
}

TEST(DistConfigCheckTest, OneWayToTrainTogether) {
  const std::string servers = "asynchronous { rule: ASYNCHRONOUS } ";
  EXPECT_THAT(ErrorOf(servers + "local { period: 4 }"),
              HasSubstr("leave out dist.local or dist.asynchronous"));
  EXPECT_THAT(ErrorOf(servers + "plan: AUTO"), HasSubstr("set dist.plan to CONFIG"));
  EXPECT_THAT(ErrorOf(servers + "sync_batch_norm: true"),
              HasSubstr("set dist.sync_batch_norm to false"));
  // Without a rule the rest of the message changes nothing.
  EXPECT_EQ(ErrorOf("asynchronous { servers: 2 } local { period: 4 }"), "");
}

// A worker would lose what is left of earlier gradients.
TEST(DistConfigCheckTest, WhatMayBeThrownAwayCarriesNoResidual) {
  const std::string drops = "asynchronous { rule: RINGMASTER discard_after: 8 } ";
  EXPECT_EQ(ErrorOf(drops), "");
  EXPECT_THAT(ErrorOf(drops + "compression { scheme { top_k {} } }"),
              HasSubstr("set dist.compression.error_feedback to false"));
  EXPECT_EQ(ErrorOf(drops + "compression { error_feedback: false scheme { bf16 {} } }"), "");
}

TEST(DistConfigCheckTest, BehindCodecsNoCosineIsKnown) {
  EXPECT_EQ(ErrorOf("local { period: 4 min_cosine: 0.1 }"), "");
  EXPECT_THAT(ErrorOf("local { period: 4 min_cosine: 0.1 compression { scheme { top_k {} } } }"),
              HasSubstr("is not known of what travels through codecs"));
}

// Without a period it would train synchronously, and say nothing.
TEST(DistConfigCheckTest, QuadraticRoundsNeedAPeriod) {
  const std::string rule = "local { period_rule: QUADRATIC quadratic_alpha: 0.2 ";
  EXPECT_EQ(ErrorOf(rule + "period: 1 }"), "");
  EXPECT_THAT(ErrorOf(rule + "}"), HasSubstr("QUADRATIC needs period >= 1"));
  EXPECT_EQ(ErrorOf("local { period_rule: AUTO }"), "");
}

// It would train synchronously, and say nothing.
TEST(DistConfigCheckTest, WithoutRoundsNoFieldOfThemMayBeSet) {
  const std::map<std::string, std::string> rows = {{"start_epoch", "1"},
                                                   {"overlap", "false"},
                                                   {"outer_learning_rate", "0.7"},
                                                   {"outer_momentum", "0.6"},
                                                   {"outer_form", "SLOW_MOMENTUM"},
                                                   {"compression", "{ scheme { linear8 {} } }"},
                                                   {"min_cosine", "0.1"},
                                                   {"rate_batch", "OWN"}};
  const std::set<std::string> of_the_rule = {"period", "period_rule", "quadratic_alpha"};
  EXPECT_EQ(static_cast<size_t>(LocalConfig::descriptor()->field_count()),
            rows.size() + of_the_rule.size());
  for (const auto& [field, value] : rows) {
    const std::string set = field + ": " + value;
    EXPECT_THAT(ErrorOf("local { " + set + " }"),
                AllOf(HasSubstr("dist.local." + field + ": " + field + " is for rounds"),
                      HasSubstr("set dist.local.period")))
        << set;
    EXPECT_EQ(ErrorOf("local { period: 1 " + set + " }"), "") << set;
    EXPECT_EQ(ErrorOf("local { period_rule: AUTO " + set + " }"), "") << set;
  }
  EXPECT_THAT(ErrorOf("local { outer_momentum: 0.6 overlap: false }"),
              HasSubstr("dist.local.overlap: "))
      << "the first in the order of the schema";
}

TEST(DistConfigCheckTest, WithoutRoundsDefaultsAreFine) {
  EXPECT_EQ(ErrorOf("local {}"), "");
  EXPECT_EQ(ErrorOf("local { period: 0 period_rule: FIXED quadratic_alpha: 0 start_epoch: 0 "
                    "overlap: true outer_learning_rate: 1 outer_momentum: 0 outer_form: NESTEROV "
                    "compression { statistics_every_steps: 1 } min_cosine: 0 "
                    "rate_batch: ALL_RANKS }"),
            "");
}

TEST(DistConfigCheckTest, AlphaIsOfTheQuadraticRule) {
  for (const std::string rule : {"", "period: 4 ", "period_rule: AUTO "}) {
    EXPECT_THAT(ErrorOf("local { quadratic_alpha: 0.2 " + rule + "}"),
                AllOf(HasSubstr("dist.local.quadratic_alpha: "), HasSubstr("to QUADRATIC")))
        << rule;
  }
}

// Rounds have them at their ends.
TEST(DistConfigCheckTest, StatisticsOfSomeStepsAreForGradients) {
  const std::string some = "compression { statistics_every_steps: 4 } ";
  EXPECT_THAT(ErrorOf("local { period: 4 " + some + "}"),
              HasSubstr("dist.local.compression.statistics_every_steps: "));
  EXPECT_THAT(ErrorOf(some + "local { period: 4 }"),
              HasSubstr("dist.compression.statistics_every_steps: "));
  EXPECT_EQ(ErrorOf(some + "local { period: 4 start_epoch: 1 }"), "") << "used before the rounds";
  EXPECT_EQ(ErrorOf(some), "");
}

// The remedy is one that is accepted.
TEST(DistConfigCheckTest, WithSharedStatisticsRoundsAreLeftOut) {
  const std::string shared = "sync_batch_norm: true ";
  for (const auto& [field, local] : std::map<std::string, std::string>{
           {"period: ", "period: 4"},
           {"period_rule: ", "period_rule: AUTO"},
           {"period: ranks", "period_rule: QUADRATIC period: 1 quadratic_alpha: 0.2"}}) {
    const std::string text = shared + "local { " + local + " }";
    EXPECT_THAT(ErrorOf(text), AllOf(HasSubstr("dist.local." + field),
                                     HasSubstr("leave out dist.local (--set dist.local={})")))
        << local;
    DistConfig config;
    ASSERT_TRUE(ParseTextConfig(text, "test", &config, nullptr).ok()) << text;
    ASSERT_TRUE(ApplyOverride("local={}", &config, nullptr).ok());
    EXPECT_TRUE(ValidateDistConfig(config, nullptr).ok()) << local;
  }
}

// Gradients travel before the rounds, if at all.
TEST(DistConfigCheckTest, RoundsHaveNoGradientsToCompress) {
  const std::string gradients = "compression { scheme { top_k {} } } ";
  EXPECT_THAT(ErrorOf(gradients + "local { period: 4 }"),
              AllOf(HasSubstr("dist.compression: "), HasSubstr("set dist.local.compression")));
  EXPECT_THAT(ErrorOf(gradients + "local { period_rule: AUTO }"),
              HasSubstr("set dist.local.compression"));
  EXPECT_EQ(ErrorOf(gradients + "local { period: 4 start_epoch: 1 }"), "");
  EXPECT_EQ(ErrorOf(gradients + "local {}"), "") << "no rounds";
  EXPECT_EQ(ErrorOf("local { period: 4 compression { scheme { top_k {} } } }"), "");
}

// With its momentum in the optimizer's place, rounds would have none.
TEST(DistConfigCheckTest, DgcAndRoundsExcludeEachOther) {
  for (const std::string start : {"", "start_epoch: 1 "}) {
    EXPECT_THAT(ErrorOf("compression { scheme { dgc {} } } local { period: 4 " + start + "}"),
                AllOf(HasSubstr("dist.compression: dgc"), HasSubstr("or leave out dist.local")))
        << start;
  }
}

TEST(DistConfigCheckTest, StagesByThemselvesAreFine) {
  EXPECT_EQ(ErrorOf("model_parallel { pipeline { stages: 4 } }"), "");
  EXPECT_EQ(ErrorOf("model_parallel { pipeline { stages: 2 cut_after: 'a' schedule: GPIPE } }"),
            "");
}

TEST(DistConfigCheckTest, StagesExcludeOtherWays) {
  const std::string stages = "model_parallel { pipeline { stages: 2 } ";
  EXPECT_THAT(ErrorOf(stages + "linear: AUTO }"), HasSubstr("dist.model_parallel.linear or"));
  EXPECT_THAT(ErrorOf(stages + "} local { period: 4 }"), HasSubstr("dist.local and"));
  EXPECT_THAT(ErrorOf(stages + "} asynchronous { rule: ASYNCHRONOUS }"),
              HasSubstr("dist.local and"));
  EXPECT_THAT(ErrorOf(stages + "} compression { scheme { top_k {} } }"),
              HasSubstr("leave out dist.compression or"));
  EXPECT_THAT(ErrorOf(stages + "} plan: AUTO"), HasSubstr("set dist.plan to CONFIG"));
  EXPECT_THAT(ErrorOf("model_parallel { pipeline { stages: 3 cut_after: 'a' } }"),
              HasSubstr("3 stages are cut after 2 layers, not 1"));
  EXPECT_THAT(ErrorOf("model_parallel { pipeline { stages: 65 } }"), HasSubstr("stages"));
}

TEST(DistConfigCheckTest, DividedLayersByThemselvesAreFine) {
  EXPECT_EQ(ErrorOf("model_parallel { linear: AUTO }"), "");
  EXPECT_EQ(ErrorOf("model_parallel { linear: NAMED layer: 'fc' } sync_batch_norm: true"), "");
  // Without a period or a rule there is nothing that they exclude.
  EXPECT_EQ(ErrorOf("model_parallel { linear: AUTO } local {}"), "");
  EXPECT_EQ(ErrorOf("model_parallel { linear: AUTO } asynchronous { servers: 2 }"), "");
}

// Ranks that hold different layers need each other in every step.
TEST(DistConfigCheckTest, DividedLayersExcludeOtherWays) {
  const std::string linear = "dist.model_parallel.linear: ";
  for (const std::string divided : {"linear: AUTO", "linear: NAMED layer: 'fc'"}) {
    const std::string layers = "model_parallel { " + divided + " } ";
    EXPECT_THAT(ErrorOf(layers + "local { period: 4 }"),
                AllOf(HasSubstr(linear), HasSubstr("leave out dist.model_parallel, or dist.local")))
        << divided;
    EXPECT_THAT(ErrorOf(layers + "local { period_rule: AUTO }"), HasSubstr("or dist.local"))
        << divided;
    EXPECT_THAT(ErrorOf(layers + "asynchronous { rule: ASYNCHRONOUS }"),
                AllOf(HasSubstr(linear), HasSubstr("and dist.asynchronous")))
        << divided;
    EXPECT_THAT(ErrorOf(layers + "plan: AUTO"),
                AllOf(HasSubstr(linear),
                      HasSubstr("leave out dist.model_parallel, or set dist.plan to CONFIG")))
        << divided;
  }
}

// A plan that has been made may have divided them.
TEST(DistConfigCheckTest, APlanThatIsMadeMayDivideLayers) {
  EXPECT_EQ(ErrorOf("model_parallel { linear: AUTO } plan: AUTO planned { rank: 0 world: 1 }"), "");
}

TEST(DistConfigCheckTest, DividedLayersAreNamedIfTheyAreToBe) {
  EXPECT_THAT(ErrorOf("model_parallel { linear: NAMED }"), HasSubstr("give both, or neither"));
  EXPECT_THAT(ErrorOf("model_parallel { linear: AUTO layer: 'fc' }"),
              HasSubstr("give both, or neither"));
}

TEST(DistConfigCheckTest, RoundsFromTheFirstStepOnNeedNotTheSameNumerics) {
  const auto needs = [](const std::string& text) {
    DistConfig config;
    EXPECT_TRUE(ParseTextConfig(text, "test", &config, nullptr).ok()) << text;
    return NeedsSameNumerics(config);
  };
  EXPECT_FALSE(needs("local { period: 4 }"));
  EXPECT_FALSE(needs("local { period_rule: AUTO }"));
  EXPECT_TRUE(needs("local { period: 4 start_epoch: 1 }"));
  EXPECT_TRUE(needs(""));
}

TEST(DistConfigCheckTest, PlacesAreNamed) {
  EXPECT_THAT(ErrorOf("asynchronous { rule: STALE_SYNC bound: -2 }"), HasSubstr("bound"));
  EXPECT_THAT(ErrorOf("asynchronous { rule: ASYNCHRONOUS servers: 5000 }"), HasSubstr("servers"));
  EXPECT_THAT(ErrorOf("local { period: 4 } plan: AUTO"),
              HasSubstr("takes no local steps: leave out dist.local"));
}

}  // namespace
}  // namespace ringtail
