// What several servers send is put together to the state that they were made from.
#include "apps/trainer/asynchronous/state_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

// Adam has two blocks, and there is an average (optim.ema_decay).
TrainingState State() {
  const LoadedConfig loaded = TinyConfig({"optim.adam={}", "optim.ema_decay=0.9"});
  return TrainingState::Create(CreateModel(loaded).value(), loaded.config.optim(), 1).value();
}

std::vector<std::span<float>> BlocksOf(const TrainingState& state) {
  std::vector<std::span<float>> blocks = {state.model()->arena().values()};
  for (const Optimizer::StateBlock& block : state.optimizer()->state()) {
    blocks.push_back(block.values);
  }
  blocks.push_back(state.average()->values());
  return blocks;
}

std::vector<std::string> NamesOf(const TrainingState& state) {
  std::vector<std::string> names;
  for (const auto& block : state.optimizer()->state()) names.push_back(block.name);
  return names;
}

// Another number in each place; zeros in the gaps between parameters, which do not travel.
void Fill(const TrainingState& state, RuleState* rule) {
  std::vector<std::span<float>> blocks = BlocksOf(state);
  if (!rule->block.empty()) blocks.emplace_back(rule->block);
  float value = 0;
  for (const std::span<float> block : blocks) {
    for (const Parameter& p : state.model()->arena().parameters()) {
      for (float& v : block.subspan(p.offset, p.elements)) v = value += 0.25F;
    }
  }
  for (const std::span<float> block :
       {state.model()->arena().buffer_values(), state.average()->buffers()}) {
    for (float& v : block) v = value += 0.25F;
  }
}

PlacedShard Shard(const TrainingState& state, std::vector<size_t> parameters) {
  const ShardLayout layout(state.model()->arena().parameters(), parameters);
  return {.parameters = std::move(parameters), .layout = layout};
}

// As a server lays it out.
std::vector<float> Sent(const PlacedShard& shard, bool first, const TrainingState& state,
                        const RuleState& rule, const RuleScalars& scalars) {
  std::vector<float> sent;
  std::vector<std::span<float>> blocks = BlocksOf(state);
  std::vector<float> learnt = rule.block;
  if (!learnt.empty()) blocks.emplace_back(learnt);
  for (const std::span<float> block : blocks) {
    std::vector<float> own(static_cast<size_t>(shard.layout.elements()));
    shard.layout.Gather(block, own);
    sent.insert(sent.end(), own.begin(), own.end());
  }
  sent.resize(sent.size() + kScalarFloats);
  EncodeScalars(scalars, std::span(sent).last(kScalarFloats));
  if (!first) return sent;
  for (const std::span<float> statistics :
       {state.model()->arena().buffer_values(), state.average()->buffers()}) {
    sent.insert(sent.end(), statistics.begin(), statistics.end());
  }
  return sent;
}

class StateSnapshotTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(WithAndWithoutABlockOfTheRule, StateSnapshotTest, testing::Bool());

TEST_P(StateSnapshotTest, TwoShardsAreTheWholeState) {
  const TrainingState servers = State();
  TrainingState together = State();
  RuleState learnt{.name = "velocities"}, received{.name = "velocities"};
  if (GetParam()) {
    learnt.block.resize(servers.model()->arena().values().size());
    received.block.resize(learnt.block.size());
  }
  Fill(servers, &learnt);

  const size_t count = servers.model()->arena().parameters().size();
  std::vector<size_t> odd, even;
  for (size_t p = 0; p < count; ++p) (p % 2 == 0 ? even : odd).push_back(p);
  const std::vector<std::string> names = NamesOf(servers);
  for (const bool first : {true, false}) {
    const PlacedShard shard = Shard(servers, first ? even : odd);
    const RuleScalars scalars{.updates = first ? 10 : 20, .usual_weight = 0.5};
    const std::vector<float> sent = Sent(shard, first, servers, learnt, scalars);
    EXPECT_EQ(SnapshotBytes(shard, first, names.size(), servers, learnt),
              sent.size() * sizeof(float));
    EXPECT_EQ(PutSnapshot(shard, first, names, sent, &together, &received), scalars);
  }

  const auto wanted = servers.Tensors(), got = together.Tensors();
  ASSERT_EQ(wanted.size(), got.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(wanted[i].data, got[i].data)) << wanted[i].name;
  }
  EXPECT_EQ(received.block, learnt.block);
}

// A server without momentum (server_optimizer.h) sends no such block, and the run's stays as it is.
TEST(StateSnapshotTest, ABlockThatServersDoNotHaveStays) {
  const TrainingState servers = State();
  TrainingState together = State();
  RuleState none;
  Fill(servers, &none);
  std::vector<size_t> all(servers.model()->arena().parameters().size());
  std::iota(all.begin(), all.end(), size_t{0});
  const PlacedShard shard = Shard(servers, all);
  const size_t bytes = SnapshotBytes(shard, /*first=*/false, /*blocks=*/0, servers, none);
  std::vector<float> sent(bytes / sizeof(float), 7.0F);
  EncodeScalars({}, std::span(sent).last(kScalarFloats));
  PutSnapshot(shard, /*first=*/false, /*blocks=*/{}, sent, &together, &none);
  EXPECT_EQ(together.model()->arena().parameters()[0].value()[0], 7.0F);
  for (const Optimizer::StateBlock& block : together.optimizer()->state()) {
    EXPECT_THAT(block.values, testing::Each(0.0F)) << block.name;
  }
}

// A server of many workers keeps no momentum: what the run has of it is of fewer.
TEST(StateSnapshotTest, BlocksThatServersDoNotHaveAreForgotten) {
  const TrainingState state = State();
  RuleState none;
  Fill(state, &none);
  const std::vector<Optimizer::StateBlock> blocks = state.optimizer()->state();
  ASSERT_EQ(blocks.size(), 2U);
  const std::vector<float> first(blocks[0].values.begin(), blocks[0].values.end());
  ForgetOtherBlocks({blocks[0]}, state.optimizer());
  EXPECT_TRUE(std::ranges::equal(blocks[0].values, first));
  EXPECT_THAT(blocks[1].values, testing::Each(0.0F));
}

}  // namespace
}  // namespace ringtail
