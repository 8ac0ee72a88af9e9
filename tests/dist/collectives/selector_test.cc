#include "dist/collectives/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Pair;

constexpr LinkModel kGigabit = {
    .latency_s = 150e-6, .seconds_per_byte = 1 / 117e6, .reduce_seconds_per_byte = 1 / 5e9};
constexpr LinkModel kSharedMemory = {
    .latency_s = 5e-6, .seconds_per_byte = 1 / 3e9, .reduce_seconds_per_byte = 1 / 5e9};
constexpr NetworkModel kCluster = {.within_host = kSharedMemory, .between_hosts = kGigabit};

AlgorithmSelector Selector(std::string_view setting, Topology topology) {
  auto selector = AlgorithmSelector::Create(setting, std::move(topology), kCluster);
  EXPECT_TRUE(selector.ok()) << selector.status().ToString();
  return std::move(selector).value();
}

TEST(AlgorithmSelector, TakesRecursiveDoublingForShortMessages) {
  for (const int world : {2, 4, 8, 16}) {
    EXPECT_EQ(Selector("auto", Topology::Blocks(world, 1)).Select(1024).algorithm->name,
              "recursive_doubling")
        << world;
  }
}

// In powers of two halving and doubling costs a little less, with more peers.
TEST(AlgorithmSelector, TakesTheRingForLongMessagesBetweenHosts) {
  for (const int world : {3, 4, 5, 6, 7, 8, 12, 16}) {
    EXPECT_EQ(Selector("auto", Topology::Blocks(world, 1)).Select(25'000'000).algorithm->name,
              "ring")
        << world;
  }
}

TEST(AlgorithmSelector, TakesHalvingDoublingInPowersOfTwoWhereItIsCheaper) {
  for (const int world : {4, 8, 16}) {
    EXPECT_EQ(Selector("auto", Topology::Blocks(world, 1)).Select(300'000).algorithm->name,
              "halving_doubling")
        << world;
    EXPECT_EQ(Selector("auto", Topology::Blocks(world, world)).Select(25'000'000).algorithm->name,
              "halving_doubling")
        << world;
  }
}

TEST(AlgorithmSelector, SwitchesWhereTheFormulasCross) {  // for 8 ranks on 1 Gbit/s near 42 kB
  AlgorithmSelector selector = Selector("auto", Topology::Blocks(8, 1));
  EXPECT_EQ(selector.Select(35'000).algorithm->name, "recursive_doubling");
  EXPECT_EQ(selector.Select(50'000).algorithm->name, "halving_doubling");
}

TEST(AlgorithmSelector, TakesTheHierarchyIfRanksAreDealtOutInTurn) {
  const Topology in_turn = {.host_of_rank = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}};
  EXPECT_EQ(Selector("auto", in_turn).Select(25'000'000).algorithm->name, "hierarchical");
}

TEST(AlgorithmSelector, SaysWhyInOneSentence) {
  EXPECT_EQ(Selector("auto", Topology::Blocks(4, 1)).Select(25'000'000).why,
            "ring: 25 MB over 4 ranks at 117 MB/s, 325 ms; halving_doubling 325 ms");
  EXPECT_THAT(Selector("auto", Topology::Blocks(4, 4)).Select(1000).why,
              MatchesRegex("recursive_doubling: 1 kB over 4 ranks at 3 GB/s, [0-9.]+ us; "
                           "[a-z_]+ [0-9.]+ us"));
  EXPECT_THAT(Selector("auto", Topology::Blocks(8, 4)).Select(1'200'000'000).why,
              HasSubstr("1.2 GB over 8 ranks on 2 hosts at 117 MB/s, "));
}

TEST(AlgorithmSelector, ANameOverrides) {
  AlgorithmSelector selector = Selector("single_reducer", Topology::Blocks(4, 1));
  for (const int64_t bytes : {int64_t{0}, int64_t{1} << 30, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(selector.Select(bytes).algorithm->name, "single_reducer");
  }
  EXPECT_EQ(selector.Select(4096).why, "single_reducer: 4.1 kB, as 'single_reducer' asks for");
}

TEST(AlgorithmSelector, ATableOverridesBySize) {
  AlgorithmSelector selector =
      Selector("recursive_doubling:0-65536;ring:65536-", Topology::Blocks(4, 1));
  EXPECT_EQ(selector.Select(0).algorithm->name, "recursive_doubling");
  EXPECT_EQ(selector.Select(65535).algorithm->name, "recursive_doubling");
  EXPECT_EQ(selector.Select(65536).algorithm->name, "ring");
  EXPECT_EQ(selector.Select(int64_t{1} << 40).algorithm->name, "ring");
  EXPECT_THAT(selector.Select(65536).why, HasSubstr("'ring:65536-' asks for"));
}

TEST(AlgorithmSelector, WrongSettingsAreNamedWithWhatWouldBeRight) {
  const auto error = [](std::string_view setting) {
    return AlgorithmSelector::Create(setting, Topology::Blocks(2, 1), kCluster).status().message();
  };
  EXPECT_THAT(error("rnig"), AllOf(HasSubstr("did you mean 'ring'?"), HasSubstr("or 'auto'")));
  EXPECT_THAT(error("ring:0-5"), HasSubstr("column 8: the last entry must be open"));
}

TEST(AlgorithmSelector, AMeasurementThatCannotBeIsRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const LinkModel& broken :
       {LinkModel{.latency_s = -1e-6}, LinkModel{.seconds_per_byte = nan},
        LinkModel{.reduce_seconds_per_byte = std::numeric_limits<double>::infinity()}}) {
    const NetworkModel within = {.within_host = broken, .between_hosts = kGigabit};
    const NetworkModel between = {.within_host = kGigabit, .between_hosts = broken};
    EXPECT_THAT(
        AlgorithmSelector::Create("auto", Topology::Blocks(2, 1), within).status().message(),
        HasSubstr("within a host"));
    EXPECT_THAT(
        AlgorithmSelector::Create("auto", Topology::Blocks(2, 1), between).status().message(),
        HasSubstr("between hosts"));
  }
}

TEST(AlgorithmSelector, KeepsWhatARunBeganWith) {
  AlgorithmSelector begun = Selector("auto", Topology::Blocks(8, 1));
  EXPECT_EQ(begun.Select(35'000).algorithm->name, "recursive_doubling");
  EXPECT_EQ(begun.Select(300'000).algorithm->name, "halving_doubling");
  EXPECT_THAT(begun.Selected(),
              ElementsAre(Pair(35'000, "recursive_doubling"), Pair(300'000, "halving_doubling")));
  AlgorithmSelector resumed = Selector("auto", Topology::Blocks(8, 1));
  EXPECT_EQ(resumed.Select(35'000).algorithm->name, "recursive_doubling") << "before it is told";
  ASSERT_TRUE(resumed.Keep({{35'000, "ring"}, {40'000, "ring"}}).ok());
  EXPECT_EQ(resumed.Select(35'000).algorithm->name, "ring");
  EXPECT_EQ(resumed.Select(40'000).why, "ring: as when the run began");
  EXPECT_EQ(resumed.Select(300'000).algorithm->name, "halving_doubling");
}

TEST(AlgorithmSelector, KeepsNothingAgainstItsSetting) {
  AlgorithmSelector ring = Selector("ring", Topology::Blocks(8, 1));
  ASSERT_TRUE(ring.Keep({{1024, "recursive_doubling"}}).ok());
  EXPECT_EQ(ring.Select(1024).algorithm->name, "ring");
  EXPECT_THAT(ring.Selected(), IsEmpty());
}

TEST(AlgorithmSelector, KeepsNothingThatThereIsNot) {
  const Status status = Selector("auto", Topology::Blocks(8, 1)).Keep({{1024, "rnig"}}).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("did you mean 'ring'?"));
}

// A run on three hosts is started again on one, or on twelve, as a scheduler has it.
TEST(AlgorithmSelector, ChoosesAnewWhatDoesNotSuitOtherHosts) {
  const Topology in_turn = {.host_of_rank = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}};
  AlgorithmSelector begun = Selector("auto", in_turn);
  ASSERT_EQ(begun.Select(25'000'000).algorithm->name, "hierarchical");
  std::map<int64_t, std::string> selected = begun.Selected();
  selected[1024] = "binomial_tree";
  for (const int ranks_per_host : {12, 1}) {
    const Topology now = Topology::Blocks(12, ranks_per_host);
    AlgorithmSelector resumed = Selector("auto", now);
    const auto unsuited = resumed.Keep(selected);
    ASSERT_TRUE(unsuited.ok()) << unsuited.status().message();
    EXPECT_THAT(*unsuited, ElementsAre("hierarchical"));
    EXPECT_EQ(resumed.Select(25'000'000).algorithm,
              Selector("auto", now).Select(25'000'000).algorithm);
    EXPECT_EQ(resumed.Select(1024).algorithm->name, "binomial_tree");
  }
  AlgorithmSelector four_hosts = Selector("auto", Topology::Blocks(12, 3));
  EXPECT_THAT(four_hosts.Keep(selected).value(), IsEmpty());
  EXPECT_EQ(four_hosts.Select(25'000'000).algorithm->name, "hierarchical");
}

TEST(AlgorithmSelector, WorksAlone) {
  const AllreduceChoice choice = Selector("auto", Topology::Blocks(1, 1)).Select(1024);
  ASSERT_NE(choice.algorithm, nullptr);
  EXPECT_TRUE(choice.algorithm->plan(0, Topology::Blocks(1, 1), 256).rounds.empty());
}

}  // namespace
}  // namespace ringtail
