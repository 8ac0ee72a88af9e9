// Images divided by speed: shares, what a step takes with them, and when they are chosen.
#include "dist/planner/shares_by_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "dist/planner/facts_file.h"
#include "dist/planner/host_choice.h"
#include "tests/dist/planner/planner_facts.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kTestStream = 31;
constexpr double kNear = 1e-9;

TEST(SharesBySpeedTest, AreInProportionToSpeeds) {
  const auto shares = SharesBySpeed::Of(std::vector<double>{1, 1, 2, 1});
  EXPECT_NEAR(shares.slowest, 4 / 7.0, kNear);
  EXPECT_NEAR(shares.fastest, 8 / 7.0, kNear);
  EXPECT_EQ(ImagesOfSlowest(shares, 70, 1), 40);
  EXPECT_EQ(ImagesOfFastest(shares, 70, 1), 80);
  // Parts of 8 images each on average: 4.6 and 9.1.
  EXPECT_EQ(ImagesOfSlowest(shares, 32, 4), 4 * 5);
  EXPECT_EQ(ImagesOfFastest(shares, 32, 4), 4 * 10);
  EXPECT_EQ(ImagesOfSlowest(shares, 2, 4), 4);  // at least one in each part
}

TEST(SharesBySpeedTest, AreEvenAmongHostsThatCountAsEqual) {
  EXPECT_FALSE(SharesBySpeed::Of(std::vector<double>{1, 1.1, 1.05}).differ());
  EXPECT_TRUE(SharesBySpeed::Of(std::vector<double>{1, 1.12}).differ());
  const SharesBySpeed even;
  EXPECT_EQ(ImagesOfSlowest(even, 33, 2), 33);
  EXPECT_EQ(ImagesOfFastest(even, 33, 2), 33);
}

// Computing alone: 1 ms an image, up to 100 at once.
PlannerFacts OnlyComputes() {
  return ParseFacts(R"(
      cores: 1  update_s: 0  merge_s: 0
      parameter { name: "w" dimension: 1 kind: VECTOR }
      step { batch: 100 forward_s: 0.04 backward_s: 0.06 finish_s: 0.06 })",
                    "facts")
      .value();
}

// Hosts between which nothing takes any time.
HostChoice Choose(const PlannerFacts& facts, const std::vector<double>& slowness, int64_t batch,
                  ShareRule rule) {
  const NetworkFacts network{.hosts = static_cast<int>(slowness.size())};
  return ChooseHosts(facts, network, slowness, {.global_batches = {batch}}, rule).value();
}

// Dense steps of all hosts.
double StepSeconds(const PlannerFacts& facts, const std::vector<double>& slowness, int64_t batch,
                   ShareRule rule) {
  return Choose(facts, slowness, batch, rule).dense.seconds.sum();
}

// One host of half the speed among four: 3.5 hosts.
TEST(SharesBySpeedTest, ComputingTakesTheTimeOfTheMeanHost) {
  const std::vector<double> slowness = {1, 1, 2, 1};
  EXPECT_NEAR(StepSeconds(OnlyComputes(), slowness, 700, ShareRule::kEven), 0.35, kNear);
  EXPECT_NEAR(StepSeconds(OnlyComputes(), slowness, 700, ShareRule::kBySpeed), 0.2, kNear);
}

TEST(SharesBySpeedTest, TheSlowestHostUpdatesAllWeights) {
  PlannerFacts facts = OnlyComputes();
  facts.set_update_s(0.1);
  const PredictedSeconds seconds =
      Choose(facts, {1, 1, 2, 1}, 700, ShareRule::kBySpeed).dense.seconds;
  EXPECT_NEAR(seconds.forward + seconds.backward, 0.2, kNear);
  EXPECT_NEAR(seconds.update, 0.2, kNear);
}

// 50 images of the slow host take it 2 x 60 ms, and 100 the fast one 100 ms.
TEST(SharesBySpeedTest, ASmallShareIsComputedLessEfficiently) {
  PlannerFacts facts = OnlyComputes();
  StepFacts large = facts.step(0);
  facts.mutable_step(0)->set_batch(50);
  facts.mutable_step(0)->set_forward_s(0.024);
  facts.mutable_step(0)->set_backward_s(0.036);
  facts.mutable_step(0)->set_finish_s(0, 0.036);
  *facts.add_step() = large;
  EXPECT_NEAR(StepSeconds(facts, {1, 2}, 150, ShareRule::kBySpeed), 0.12, kNear);
  // If it is computed more efficiently, the others are waited for.
  facts.mutable_step(0)->set_forward_s(0.01);
  EXPECT_NEAR(StepSeconds(facts, {1, 2}, 150, ShareRule::kBySpeed), 0.1, kNear);
}

TEST(SharesBySpeedTest, LieBetweenFastHostsAndEvenShares) {
  Rng rng(RngKey(5).With(kTestStream));
  for (int trial = 0; trial < 100; ++trial) {
    PlannerFacts facts = RandomFacts(&rng);
    facts.set_update_s(0.1 * facts.update_s());
    facts.clear_prepare_s();
    facts.clear_norm_s();
    facts.clear_average_s();
    const int hosts = 2 + static_cast<int>(rng.Below(5));
    std::vector<double> slowness(hosts, 1);
    slowness[rng.Below(hosts)] = rng.Uniform(1.3F, 4);
    const int64_t batch = hosts * (16 + static_cast<int64_t>(rng.Below(48)));
    const double by_speed = StepSeconds(facts, slowness, batch, ShareRule::kBySpeed);
    EXPECT_LE(by_speed, StepSeconds(facts, slowness, batch, ShareRule::kEven)) << trial;
    const std::vector<double> fast(hosts, 1);
    const double all_fast = StepSeconds(facts, fast, batch, ShareRule::kEven);
    EXPECT_GE(by_speed, all_fast * (1 - kNear)) << trial;
    EXPECT_DOUBLE_EQ(StepSeconds(facts, fast, batch, ShareRule::kBySpeed), all_fast);
  }
}

// The fastest has 115 of 100 images that have been measured at once.
TEST(SharesBySpeedTest, TheFastestHasTheMemoryForItsParts) {
  EXPECT_EQ(Choose(OnlyComputes(), {1, 1, 2, 1}, 400, ShareRule::kEven).dense.parts, 1);
  EXPECT_EQ(Choose(OnlyComputes(), {1, 1, 2, 1}, 400, ShareRule::kBySpeed).dense.parts, 2);
  // Of 100 images in 58 parts the fastest would compute 3 at once, where two have been measured.
  PlannerFacts small = OnlyComputes();
  small.mutable_step(0)->set_batch(2);
  EXPECT_FALSE(Choose(small, {1, 1, 2, 1}, 400, ShareRule::kFaster).best.choice.by_speed);
}

// Three hosts of equal speed need 133 ms, and with the fourth, which is half as fast, 114.
TEST(SharesBySpeedTest, AreChosenWhereASlowHostHelps) {
  const HostChoice choice = Choose(OnlyComputes(), {1, 1, 2, 1}, 400, ShareRule::kFaster);
  EXPECT_THAT(choice.hosts, ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(choice.best.choice.by_speed);
  EXPECT_THAT(Describe(choice.best.choice), HasSubstr("every step, images divided by speed"));
  EXPECT_NEAR(choice.best.images_per_s() / choice.one_host.images_per_s(), 3.5, 0.06);
  ASSERT_TRUE(choice.even.has_value());
  EXPECT_EQ(choice.even->choice.hosts, 3);
  EXPECT_FALSE(choice.even->choice.by_speed);
  EXPECT_NEAR(choice.dense.seconds.sum(), 0.2, kNear);  // evenly, as a run without a plan
}

// 7.25 hosts are less than 5 % faster than 7.
TEST(SharesBySpeedTest, AreNotChosenForLittle) {
  const HostChoice choice =
      Choose(OnlyComputes(), {1, 1, 1, 1, 1, 1, 1, 4}, 8000, ShareRule::kFaster);
  EXPECT_EQ(choice.hosts.size(), 7);
  EXPECT_FALSE(choice.best.choice.by_speed);
  EXPECT_FALSE(choice.even.has_value());
  const HostChoice equal = Choose(OnlyComputes(), {1, 1.08, 1}, 400, ShareRule::kFaster);
  EXPECT_EQ(equal.hosts.size(), 3);
  EXPECT_FALSE(equal.best.choice.by_speed);
}

TEST(SharesBySpeedTest, AreTakenAsAsked) {
  const HostChoice choice = Choose(OnlyComputes(), {1, 1, 1.08}, 300, ShareRule::kBySpeed);
  EXPECT_EQ(choice.hosts.size(), 3);
  EXPECT_TRUE(choice.best.choice.by_speed);
  EXPECT_FALSE(choice.even.has_value());
  EXPECT_FALSE(choice.one_host.choice.by_speed);
}

// The slow one of four hosts has 9 of 64 images, of which batch norm would take its statistics.
TEST(SharesBySpeedTest, BatchNormNeedsEnoughImagesOnEachHost) {
  PlannerFacts facts = OnlyComputes();
  const auto by_speed = [&](int64_t batch) {
    return Choose(facts, {1, 1, 2, 1}, batch, ShareRule::kFaster).best.choice.by_speed;
  };
  EXPECT_TRUE(by_speed(64));
  facts.set_buffer_elements(8);
  EXPECT_FALSE(by_speed(64));
  EXPECT_TRUE(by_speed(400));
  facts.add_synchronized_channels(4);  // those of all ranks
  EXPECT_TRUE(by_speed(64));
}

TEST(SharesBySpeedTest, RanksThatDivideLayersHaveEvenShares) {
  const PlannerFacts facts = OnlyComputes();
  StepSimulator simulator(facts, {.hosts = 4}, {.shares = {.slowest = 0.5, .fastest = 1.2}});
  const auto refused =
      simulator.Simulate({.hosts = 4, .global_batch = 400, .divided = true, .by_speed = true});
  EXPECT_THAT(refused.status().message(), HasSubstr("as many images each"));
  const SearchSpace space{.hosts = {4}, .global_batches = {400}, .divided = true, .by_speed = true};
  const auto found = Search(&simulator, space);
  ASSERT_TRUE(found.ok()) << found.status().message();
  for (const Prediction& p : found->best) {
    EXPECT_FALSE(p.choice.divided);
    EXPECT_EQ(p.choice.by_speed, p.choice.hosts > 1);
  }
}

}  // namespace
}  // namespace ringtail
