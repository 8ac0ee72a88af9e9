#include "dist/parameter_server/rule_choice.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/config/text_config.h"
#include "dist/parameter_server/presets.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Config = AsynchronousConfig;
using By = Grouping::By;
using Weigh = StalenessWeight::Form;
using Correct = Compensation::Form;

constexpr int64_t kAny = Admission::kUnbounded;

// The rows, with every choice in full.
std::map<Config::Rule, AsynchronousRule> Rows() {
  const Grouping each{.by = By::kPushes, .pushes = 1, .gradients_per_push = 1};
  return {
      {Config::SYNCHRONOUS, {{0, 0}, {.by = By::kAllWorkers, .backups = 0}, {Weigh::kOne}, {}}},
      {Config::ASYNCHRONOUS, {{kAny, 0}, each, {Weigh::kOne}, {}}},
      {Config::SOFT_SYNC,
       {{kAny, 0}, {.by = By::kSplits, .splits = 1}, {Weigh::kInverse}, {Correct::kNone}}},
      {Config::STALE_SYNC, {{3, 0}, each, {Weigh::kOne}, {Correct::kNone}}},
      {Config::ADA_DELAY, {{kAny, 0}, each, {Weigh::kAdaDelay}, {Correct::kNone}}},
      {Config::DC_CONSTANT, {{kAny, 0}, each, {Weigh::kOne}, {Correct::kConstant, 0.04}}},
      {Config::DC_ADAPTIVE, {{kAny, 0}, each, {Weigh::kOne}, {Correct::kAdaptive, 2, 0.95}}},
      {Config::RINGMASTER, {{kAny, 0}, each, {Weigh::kOne}, {Correct::kNone}}},
      {Config::GAP_AWARE, {{kAny, 0}, each, {Weigh::kGapAware}, {Correct::kNone}}},
      {Config::DANA, {{kAny, 0}, each, {Weigh::kOne}, {Correct::kDana, 0, 0.9}}},
      {Config::BACKUP_WORKERS,
       {{0, 1}, {.by = By::kAllWorkers, .backups = 1}, {Weigh::kOne}, {Correct::kNone}}},
  };
}

Config Parse(const std::string& text) {
  Config config;
  EXPECT_TRUE(ParseTextConfig(text, "test", &config, nullptr).ok()) << text;
  return config;
}

AsynchronousRule Rule(const std::string& text) { return RuleOf(Parse(text)); }

TEST(PresetsTest, EachIsItsRow) {
  const auto rows = Rows();
  ASSERT_EQ(rows.size() + 1, static_cast<size_t>(Config::Rule_ARRAYSIZE));
  for (const auto& [rule, row] : rows) {
    EXPECT_EQ(PublishedRule(rule), row) << Config::Rule_Name(rule);
    Config config;
    config.set_rule(rule);
    config.set_as_published(true);
    EXPECT_EQ(RuleOf(config), row) << Config::Rule_Name(rule);
  }
}

// What is added where the paper has nothing, and nothing else.
TEST(PresetsTest, SafeRulesDifferInTheirSafety) {
  for (auto [rule, row] : Rows()) {
    if (rule == Config::ASYNCHRONOUS || rule == Config::STALE_SYNC || rule == Config::RINGMASTER) {
      row.weight.form = Weigh::kInverse;
    }
    if (row.compensation.strength > 0) {
      row.compensation.limit = 1;
      row.compensation.start_epoch = 1;
    }
    EXPECT_EQ(SafeRule(rule), row) << Config::Rule_Name(rule);
    Config config;
    config.set_rule(rule);
    EXPECT_EQ(RuleOf(config), row) << Config::Rule_Name(rule);
  }
}

TEST(GroupingTest, PushesOfAnUpdate) {
  EXPECT_EQ(Grouping{}.PushesPerUpdate(30), 1);
  const auto splits = [](int n, int workers) {
    return Grouping{.by = By::kSplits, .splits = n}.PushesPerUpdate(workers);
  };
  EXPECT_EQ(splits(1, 30), 30);
  EXPECT_EQ(splits(2, 30), 15);
  EXPECT_EQ(splits(4, 30), 7);
  EXPECT_EQ(splits(30, 30), 1);
  EXPECT_EQ(splits(30, 8), 1);
  const Grouping backup{.by = By::kAllWorkers, .backups = 2};
  EXPECT_EQ(backup.PushesPerUpdate(30), 28);
  EXPECT_EQ(backup.PushesPerUpdate(2), 1);
  EXPECT_EQ(backup.PushesPerUpdate(0), 1);
}

// Both numbers of soft synchronization: n = s = 1 is asynchronous SGD, s = m is Downpour.
TEST(RuleChoiceTest, SoftSynchronizationInBothNumbers) {
  EXPECT_EQ(Rule("rule: ASYNCHRONOUS pushes: 1 gradients_per_push: 1"), Rule("rule: ASYNCHRONOUS"));
  const AsynchronousRule downpour = Rule("rule: ASYNCHRONOUS gradients_per_push: 5");
  EXPECT_EQ(downpour.grouping, (Grouping{.by = By::kPushes, .pushes = 1, .gradients_per_push = 5}));
  const AsynchronousRule both = Rule("rule: SOFT_SYNC pushes: 4 gradients_per_push: 2");
  EXPECT_EQ(both.grouping.PushesPerUpdate(30), 4);
  EXPECT_EQ(both.grouping.gradients_per_push, 2);
}

TEST(RuleChoiceTest, FieldsThatAreSetReplaceTheRows) {
  EXPECT_EQ(Rule("rule: STALE_SYNC bound: 5").admission.bound, 5);
  EXPECT_EQ(Rule("rule: STALE_SYNC bound: -1").admission.bound, Admission::kUnbounded);
  EXPECT_EQ(Rule("rule: RINGMASTER discard_after: 9").admission.discard_after, 9);
  EXPECT_EQ(Rule("rule: SOFT_SYNC splits: 15").grouping.splits, 15);
  EXPECT_EQ(Rule("rule: SOFT_SYNC weight: ONE").weight.form, Weigh::kOne);
  const StalenessWeight exponential{Weigh::kExponential, 0.5};
  EXPECT_EQ(Rule("rule: ASYNCHRONOUS weight: EXPONENTIAL weight_rate: 0.5").weight, exponential);
  EXPECT_EQ(Rule("rule: ASYNCHRONOUS weight: INVERSE_OF_NEXT").weight.form, Weigh::kInverseOfNext);
  EXPECT_EQ(Rule("rule: ASYNCHRONOUS weight: GAP").weight.form, Weigh::kGapAware);
  EXPECT_EQ(Rule("rule: ASYNCHRONOUS weight: INVERSE").weight.form, Weigh::kInverse);
  EXPECT_EQ(Rule("rule: ADA_DELAY weight: ADAPTIVE_DELAY").weight.form, Weigh::kAdaDelay);
  const Compensation late{
      .form = Correct::kConstant, .strength = 0.1, .limit = 2, .start_epoch = 7.5};
  EXPECT_EQ(Rule("rule: DC_CONSTANT strength: 0.1 limit: 2 start_epoch: 7.5").compensation, late);
  EXPECT_EQ(Rule("rule: DANA decay: 0.5").compensation.decay, 0.5);
}

// Weights that were pulled ahead are those before the update that all are in.
TEST(RuleChoiceTest, NoOneWhoWaitsForAllPullsAhead) {
  const auto ahead = [](const std::string& text) {
    Config config;
    EXPECT_TRUE(ParseTextConfig(text, "test", &config, nullptr).ok()) << text;
    return PullsAhead(config);
  };
  EXPECT_TRUE(ahead("rule: ASYNCHRONOUS"));
  EXPECT_TRUE(ahead("rule: STALE_SYNC"));
  EXPECT_FALSE(ahead("rule: ASYNCHRONOUS overlap: false"));
  EXPECT_FALSE(ahead("rule: SYNCHRONOUS"));
  EXPECT_FALSE(ahead("rule: BACKUP_WORKERS"));
}

TEST(RuleChoiceTest, ValidConfigs) {
  EXPECT_FALSE(UsesServers(Config()));
  for (const char* text :
       {"", "rule: SYNCHRONOUS", "rule: ASYNCHRONOUS", "rule: SOFT_SYNC splits: 30",
        "rule: STALE_SYNC bound: 0", "rule: ADA_DELAY weight_rate: 0.1", "rule: DC_CONSTANT",
        "rule: DC_ADAPTIVE decay: 0 limit: 0", "rule: RINGMASTER discard_after: 1",
        "rule: GAP_AWARE versions_in_bf16: true", "rule: DANA", "rule: DANA weight: GAP",
        "rule: BACKUP_WORKERS backups: 3", "rule: ASYNCHRONOUS pull: BF16",
        "rule: ASYNCHRONOUS pull: DELTA key_versions: 64"}) {
    const Status status = ValidateAsynchronous(Parse(text), nullptr);
    EXPECT_TRUE(status.ok()) << text << ": " << status.ToString();
  }
}

TEST(RuleChoiceTest, RefusesWithThePlaceOfTheField) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"bound: -2", "bound"},
      {"discard_after: -1", "discard_after"},
      {"pushes: 0", "pushes"},
      {"splits: 1025", "splits"},
      {"backups: -1", "backups"},
      {"gradients_per_push: 0", "gradients_per_push"},
      {"weight_rate: 0", "weight_rate"},
      {"strength: -1", "strength"},
      {"limit: nan", "limit"},
      {"start_epoch: -0.5", "start_epoch"},
      {"decay: 1", "decay"},
      {"versions: 0", "versions"},
      {"pull: DELTA key_versions: 0", "key_versions"},
      {"pull: BF16 key_versions: 64", "key_versions"},
      {"rule: SYNCHRONOUS bound: 1", "bound"},
      {"rule: SYNCHRONOUS backups: 1", "discard_after"},
      {"rule: RINGMASTER", "discard_after"},
      {"rule: ADA_DELAY", "weight_rate"},
      {"rule: ASYNCHRONOUS weight: EXPONENTIAL", "weight_rate"},
      {"rule: ASYNCHRONOUS weight_rate: 1", "weight_rate"},
      {"rule: DC_CONSTANT weight: GAP", "weight"},
      {"rule: ASYNCHRONOUS strength: 1", "strength"},
      {"rule: DANA limit: 1", "limit"},
      {"rule: STALE_SYNC start_epoch: 1", "start_epoch"},
      {"rule: DC_CONSTANT decay: 0.5", "decay"},
  };
  for (const auto& [text, field] : refused) {
    const Status status = ValidateAsynchronous(Parse(text), nullptr);
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), StartsWith(fmt::format("dist.asynchronous.{0}: {0}", field)))
        << text;
  }
  const Status two = ValidateAsynchronous(Parse("rule: SOFT_SYNC pushes: 2 splits: 3"), nullptr);
  EXPECT_THAT(two.message(), HasSubstr("only one of pushes, splits and backups"));
}

TEST(RuleChoiceTest, SaysTheRuleInWords) {
  EXPECT_EQ(Rule("rule: STALE_SYNC").Describe(),
            "at most 3 steps ahead of the slowest; every push is an update; weight 1 / tau");
  EXPECT_EQ(Rule("rule: SYNCHRONOUS").Describe(),
            "all wait for the slowest; an update of all workers; weight 1");
  EXPECT_EQ(Rule("rule: BACKUP_WORKERS").Describe(),
            "all wait for the slowest, nothing 1 update old or older; an update of all workers but "
            "the 1 slowest; weight 1");
  EXPECT_EQ(Rule("rule: SOFT_SYNC splits: 5 gradients_per_push: 2").Describe(),
            "no worker waits; an update of 1/5 of the workers, 2 gradients each; weight 1 / tau");
  EXPECT_EQ(Rule("rule: DC_ADAPTIVE").Describe(),
            "no worker waits; every push is an update; weight 1, adaptive compensation 2 up to 1 "
            "from epoch 1");
  EXPECT_EQ(Rule("rule: DANA").Describe(),
            "no worker waits; every push is an update; weight 1, look-ahead with momentum 0.9");
}

}  // namespace
}  // namespace ringtail
