// What the verb `plan` recommends, and what it only lists.
#include "apps/plan/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "dist/planner/facts_file.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// 2 million weights; 32 images take 60 ms, the optimizer 10 ms, and coding nearly nothing.
PlannerFacts Facts() {
  return ParseFacts(R"(
      net: "tiny"  cores: 1  update_s: 0.01  merge_s: 0.002
      parameter { name: "w" dimension: 1000 dimension: 2000 kind: LINEAR_WEIGHT }
      step { batch: 32 forward_s: 0.02 backward_s: 0.04 finish_s: 0.04 }
      scheme { name: "linear8" compression { scheme { linear8 {} } } encode_s: 1e-3 decode_s: 1e-3 }
      scheme { name: "one_bit" compression { scheme { one_bit {} } } encode_s: 1e-3 decode_s: 1e-3 })",
                    "facts")
      .value();
}

// 1 ms for a message, and 8 MB take 0.7 s.
NetworkFacts SlowNetwork() {
  const LinkModel link{.latency_s = 1e-3, .seconds_per_byte = 1 / 20e6};
  return {.links = {.within_host = link, .between_hosts = link}, .hosts = 8, .cores_per_host = 1};
}

struct Answered {
  PlanAnswer answer;
  std::string table;
  nlohmann::json json;
};

Answered Ask(const SearchSpace& space) {
  const PlannerFacts facts = Facts();
  RunConfig config;
  config.mutable_train()->set_batch(256);
  StepSimulator simulator(facts, SlowNetwork());
  Answered asked;
  asked.answer =
      AnswerPlan(&simulator, {.facts = &facts, .config = &config, .space = space, .periods = {}})
          .value();
  asked.table = PlanTable(facts, SlowNetwork(), asked.answer);
  asked.json = nlohmann::json::parse(PlanJson(facts, SlowNetwork(), asked.answer));
  return asked;
}

SearchSpace AllOfTheFacts() { return DefaultSpace(Facts(), SlowNetwork(), 256, 8); }

// On such a network eight local steps of one bit are fastest, but no network was shown to train so.
TEST(PlanReport, WhatIsRecommendedHasBeenShownToBeAccurate) {
  const Answered asked = Ask(AllOfTheFacts());
  EXPECT_EQ(asked.answer.recommended.choice.scheme, "linear8");
  EXPECT_EQ(asked.answer.recommended.choice.period, 1);
  EXPECT_TRUE(asked.json["recommended_is_shown"]);
  EXPECT_GT(asked.json["fastest"]["period"], 1);
  EXPECT_GT(asked.json["fastest"]["images_per_s"], asked.json["recommended"]["images_per_s"]);
  EXPECT_THAT(asked.answer.settings, Not(testing::Contains(HasSubstr("dist.local"))));
  EXPECT_THAT(asked.table, AllOf(HasSubstr("hosts, linear8, every step, buckets of"),
                                 HasSubstr("faster, but not shown to train as accurately: ")));
}

TEST(PlanReport, NothingIsNamedThatIsNotFaster) {
  SearchSpace space = AllOfTheFacts();
  space.periods = {1};
  space.schemes = {"dense", "linear8"};
  const Answered asked = Ask(space);
  EXPECT_EQ(asked.answer.recommended.choice, asked.answer.found.recommended.choice);
  EXPECT_THAT(asked.table, Not(HasSubstr("faster, but")));
}

// The user has asked for it, and is told.
TEST(PlanReport, WhatAloneIsAskedForIsRecommendedAndSaidNotToBeShown) {
  SearchSpace space = AllOfTheFacts();
  space.schemes = {"one_bit"};
  const Answered asked = Ask(space);
  EXPECT_EQ(asked.answer.recommended.choice.scheme, "one_bit");
  EXPECT_FALSE(asked.json["recommended_is_shown"]);
  EXPECT_THAT(asked.table, HasSubstr("times one host, not shown to train as accurately"));
}

// All others are compared with it, so there is nothing to be shown.
TEST(PlanReport, OneHostNeedsNotBeShown) {
  SearchSpace space = AllOfTheFacts();
  space.schemes = {"one_bit"};
  space.hosts = {1};
  const Answered asked = Ask(space);
  EXPECT_EQ(asked.answer.recommended.choice.hosts, 1);
  EXPECT_TRUE(asked.json["recommended_is_shown"]);
  EXPECT_THAT(asked.table, Not(HasSubstr("not shown to train as accurately")));
}

}  // namespace
}  // namespace ringtail
