// The cut that is found is the best of all that there are, keeps to the memory limit, and errors say
// what is too large.
#include "dist/pipeline/partition.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "core/random.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kTiny = 1e-9;
constexpr int64_t kMib = 1 << 20;

PartitionProblem Problem(int stages, int micro_batches, const std::vector<double>& seconds,
                         int64_t bytes = 0) {
  PartitionProblem problem;
  problem.shape = {PipelineKind::kOneForwardOneBackward, stages, micro_batches};
  for (size_t i = 0; i < seconds.size(); ++i) {
    problem.layers.push_back({.name = fmt::format("layer{}", i),
                              .forward_s = seconds[i],
                              .backward_s = 2 * seconds[i],
                              .may_cut_after = true,
                              .crossing = {bytes, bytes}});
  }
  return problem;
}

int64_t BytesOf(const PipelinePartition& partition) {
  int64_t bytes = 0;
  for (const BoundaryCost& boundary : partition.costs.boundaries) {
    bytes += boundary.activation_bytes + boundary.gradient_bytes;
  }
  return bytes;
}

// Calls `visit` with every partition that is allowed and fits.
template <typename Visit>
void ForEachPartition(const PartitionProblem& problem, const Visit& visit) {
  const auto layers = static_cast<int>(problem.layers.size());
  for (uint32_t cuts = 0; cuts < 1U << (layers - 1); ++cuts) {
    std::vector<int> last_layers;
    bool allowed = true;
    for (int i = 0; i + 1 < layers; ++i) {
      if ((cuts >> i & 1) == 0) continue;
      last_layers.push_back(i);
      allowed = allowed && problem.layers[i].may_cut_after;
    }
    last_layers.push_back(layers - 1);
    if (!allowed || static_cast<int>(last_layers.size()) != problem.shape.stages) continue;
    const PipelinePartition partition = PriceOfCuts(problem, last_layers);
    const int64_t most =
        *std::max_element(partition.memory_bytes.begin(), partition.memory_bytes.end());
    if (problem.memory_limit_bytes > 0 && most > problem.memory_limit_bytes) continue;
    visit(partition);
  }
}

TEST(PartitionTest, CutsWhereStagesAreEqual) {
  const auto partition = PartitionLayers(Problem(3, 8, {1, 1, 2, 1, 1, 1, 1}));
  ASSERT_TRUE(partition.ok()) << partition.status().ToString();
  EXPECT_EQ(partition->last_layers.back(), 6);
  EXPECT_EQ(partition->costs.stages.size(), 3U);
  for (const StageCost& stage : partition->costs.stages) EXPECT_LE(stage.forward_s, 3);
  EXPECT_TRUE(partition->is_proven);
}

TEST(PartitionTest, OneStageIsTheWholeNetwork) {
  const auto partition = PartitionLayers(Problem(1, 4, {1, 2, 3}));
  ASSERT_TRUE(partition.ok());
  EXPECT_THAT(partition->last_layers, ElementsAre(2));
  EXPECT_DOUBLE_EQ(partition->price.step_s, 4 * 18);
  EXPECT_EQ(partition->FirstLayer(0), 0);
}

// A cut after layer 1 is balanced best, but its message takes longer than a stage.
TEST(PartitionTest, AvoidsASlowMessage) {
  PartitionProblem problem = Problem(2, 8, {1, 1, 1, 1}, 1);
  problem.layers[1].crossing = {100, 100};
  problem.link = {.latency_s = 0, .seconds_per_byte = 0.1};
  const auto partition = PartitionLayers(problem);
  ASSERT_TRUE(partition.ok());
  EXPECT_THAT(partition->last_layers, testing::AnyOf(ElementsAre(0, 3), ElementsAre(2, 3)));
  problem.link = {};
  EXPECT_THAT(PartitionLayers(problem)->last_layers, ElementsAre(1, 3));
}

TEST(PartitionTest, NeverCutsWhereItMayNot) {
  PartitionProblem problem = Problem(2, 8, {1, 1, 1, 1});
  problem.layers[1].may_cut_after = problem.layers[2].may_cut_after = false;
  const auto partition = PartitionLayers(problem);
  ASSERT_TRUE(partition.ok());
  EXPECT_THAT(partition->last_layers, ElementsAre(0, 3));
  EXPECT_EQ(partition->FirstLayer(1), 1);
}

// Layers without time: the later cut, and fewer bytes first.
TEST(PartitionTest, OfEqualCutsTakesTheOneWithFewerBytesThenTheLatest) {
  PartitionProblem problem = Problem(2, 4, {1, 0, 0, 0, 1}, 50);
  EXPECT_THAT(PartitionLayers(problem)->last_layers, ElementsAre(3, 4));
  problem.layers[1].crossing = {10, 10};
  EXPECT_THAT(PartitionLayers(problem)->last_layers, ElementsAre(1, 4));
}

TEST(PartitionTest, FewerBytesMayCostAFractionOfTheStep) {
  PartitionProblem problem = Problem(2, 50, {10, 10, 0.1, 9.9}, 100);
  problem.layers[2].crossing = {1, 1};
  EXPECT_THAT(PartitionLayers(problem)->last_layers, ElementsAre(1, 3));
  const double shortest = PartitionLayers(problem)->price.step_s;
  problem.fewer_bytes_within = 0.02;
  const auto partition = PartitionLayers(problem);
  EXPECT_THAT(partition->last_layers, ElementsAre(2, 3));
  EXPECT_GT(partition->price.step_s, shortest);
  EXPECT_LE(partition->price.step_s, 1.02 * shortest);
}

// Stage 0 keeps two micro-batches, stage 1 one; every slot of a message counts, twice per direction.
TEST(PartitionTest, MemoryIsWeightsWhatIsKeptAndSlots) {
  PartitionProblem problem = Problem(2, 4, {1, 1}, 3);
  problem.layers[0].fixed_bytes = 1000;
  problem.layers[0].kept_bytes = 100;
  problem.layers[1].fixed_bytes = 2000;
  problem.layers[1].kept_bytes = 10;
  const auto partition = PartitionLayers(problem);
  EXPECT_THAT(partition->memory_bytes, ElementsAre(1000 + 2 * 100 + 12, 2000 + 10 + 12));
  EXPECT_THAT(partition->price.peak_activation_bytes, ElementsAre(200, 10));
  problem.shape.kind = PipelineKind::kGpipe;
  EXPECT_THAT(PartitionLayers(problem)->memory_bytes,
              ElementsAre(1000 + 4 * 100 + 12, 2000 + 4 * 10 + 12));
}

TEST(PartitionTest, TheMemoryLimitMovesTheCut) {
  PartitionProblem problem = Problem(2, 8, {1, 1, 1, 1});
  for (PipelineLayer& layer : problem.layers) layer.fixed_bytes = kMib;
  problem.layers[1].fixed_bytes = 5 * kMib;
  EXPECT_THAT(PartitionLayers(problem)->last_layers, ElementsAre(1, 3));
  // 8 MiB and 2, or 3 and 7.
  problem.layers[0].fixed_bytes = 3 * kMib;
  problem.memory_limit_bytes = 7 * kMib;
  EXPECT_THAT(PartitionLayers(problem)->last_layers, ElementsAre(0, 3));
}

TEST(PartitionTest, SaysWhichLayerAloneIsTooLarge) {
  PartitionProblem problem = Problem(2, 8, {1, 1, 1});
  problem.layers[1].fixed_bytes = 9 * kMib;
  problem.memory_limit_bytes = 8 * kMib;
  const Status status = PartitionLayers(problem).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("layer 'layer1' alone needs 9.0 MiB, more than the limit "
                                          "of 8.0 MiB of a stage"));
  problem.layers[1].may_cut_after = false;
  EXPECT_THAT(PartitionLayers(problem).status().message(),
              HasSubstr("layers 'layer1' to 'layer2', which cannot be parted, need 9.0 MiB"));
}

TEST(PartitionTest, SaysTheLeastThatTheLargestStageNeeds) {
  PartitionProblem problem = Problem(2, 8, {1, 1, 1, 1});
  for (PipelineLayer& layer : problem.layers) layer.fixed_bytes = 4 * kMib;
  problem.memory_limit_bytes = 7 * kMib;
  const Status status = PartitionLayers(problem).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(),
              HasSubstr("no cut into 2 stages keeps to the limit of 7.0 MiB of a stage; the "
                        "largest stage needs 8.0 MiB at least"));
  problem.memory_limit_bytes = 8 * kMib;
  EXPECT_THAT(PartitionLayers(problem)->last_layers, ElementsAre(1, 3));
}

TEST(PartitionTest, SaysWhereTheNetworkCanBeCut) {
  PartitionProblem problem = Problem(4, 8, {1, 1, 1, 1, 1});
  problem.layers[1].may_cut_after = problem.layers[3].may_cut_after = false;
  const Status status = PartitionLayers(problem).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "4 stages need 3 cuts, but the network can be cut 2 times only: after layer0 and "
            "layer2");
  EXPECT_EQ(PartitionLayers(Problem(0, 1, {1})).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(PartitionLayers(Problem(1, 0, {1})).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(PartitionLayers(Problem(2, 1, {1})).status().message(), HasSubstr("nowhere"));
}

PartitionProblem RandomProblem(Rng* rng) {
  PartitionProblem problem;
  const int layers = 2 + static_cast<int>(rng->Below(8));
  problem.shape = {rng->Below(2) == 0 ? PipelineKind::kGpipe : PipelineKind::kOneForwardOneBackward,
                   1 + static_cast<int>(rng->Below(4)), 1 + static_cast<int>(rng->Below(9))};
  for (int i = 0; i < layers; ++i) {
    problem.layers.push_back(
        {.name = fmt::format("layer{}", i),
         .forward_s = static_cast<double>(rng->Below(6)),
         .backward_s = static_cast<double>(rng->Below(12)),
         .fixed_bytes = static_cast<int64_t>(rng->Below(100)),
         .kept_bytes = static_cast<int64_t>(rng->Below(40)),
         .may_cut_after = rng->Below(5) > 0,
         .crossing = {static_cast<int64_t>(rng->Below(20)), static_cast<int64_t>(rng->Below(20))}});
  }
  if (rng->Below(3) > 0) problem.link = {.latency_s = 0.5, .seconds_per_byte = 0.25};
  if (rng->Below(2) == 0) problem.memory_limit_bytes = 200 + static_cast<int64_t>(rng->Below(400));
  if (rng->Below(3) == 0) problem.fewer_bytes_within = 0.1;
  problem.slots = 1 + static_cast<int>(rng->Below(2));
  return problem;
}

TEST(PartitionTest, IsTheBestOfAllCutsOfRandomNetworks) {
  Rng rng(RngKey(24).With(kTestStream));
  int found = 0, impossible = 0;
  for (int round = 0; round < 3000; ++round) {
    const PartitionProblem problem = RandomProblem(&rng);
    SCOPED_TRACE(testing::Message() << "round " << round);
    std::optional<double> shortest;
    ForEachPartition(problem, [&](const PipelinePartition& p) {
      shortest = shortest ? std::min(*shortest, p.price.step_s) : p.price.step_s;
    });
    const auto partition = PartitionLayers(problem);
    ASSERT_EQ(partition.ok(), shortest.has_value()) << partition.status().ToString();
    if (!partition.ok()) {
      ++impossible;
      continue;
    }
    ++found;
    const double limit = *shortest * (1 + problem.fewer_bytes_within + kTiny);
    std::optional<int64_t> fewest;
    ForEachPartition(problem, [&](const PipelinePartition& p) {
      if (p.price.step_s > limit) return;
      fewest = fewest ? std::min(*fewest, BytesOf(p)) : BytesOf(p);
    });
    ASSERT_TRUE(partition->is_proven);
    ASSERT_LE(partition->price.step_s, limit);
    ASSERT_EQ(BytesOf(*partition), *fewest);
    // What is reported is that of the cut.
    const PipelinePartition again = PriceOfCuts(problem, partition->last_layers);
    ASSERT_EQ(again.price.step_s, partition->price.step_s);
    ASSERT_EQ(again.memory_bytes, partition->memory_bytes);
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(impossible, 300);
}

// As many equal layers as a large network has places to cut, so that very many cuts are equally
// good: the search ends, proven or not, with the ideal step.
TEST(PartitionTest, ManyEqualLayersEndInTime) {
  for (const int stages : {2, 8, 16, 33}) {
    PartitionProblem problem = Problem(stages, 64, std::vector<double>(66, 1), 1000);
    const auto partition = PartitionLayers(problem);
    ASSERT_TRUE(partition.ok()) << partition.status().ToString();
    const int most = (66 + stages - 1) / stages;  // layers of the largest stage
    EXPECT_LE(partition->price.step_s, 3.0 * (66 + 63 * most) + kTiny) << stages;
  }
}

}  // namespace
}  // namespace ringtail
