#include "apps/parameter_server/shard_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

namespace ringtail {
namespace {

using testing::Each;
using testing::ElementsAre;

class ShardLayoutTest : public testing::Test {
 protected:
  ShardLayoutTest() { std::iota(model_->values().begin(), model_->values().end(), 0.0f); }

  // Each of them takes 16 or 32 floats.
  const std::unique_ptr<ParameterArena> model_ =
      ParameterArena::Create(
          {{.name = "a", .shape = {3}}, {.name = "b", .shape = {17}}, {.name = "c", .shape = {2}}},
          {})
          .value();
  const std::vector<size_t> chosen_ = {1, 2};
  const ShardLayout layout_{model_->parameters(), chosen_};
};

TEST_F(ShardLayoutTest, ParametersFollowEachOtherOnBoundaries) {
  EXPECT_EQ(layout_.elements(), 48);
  EXPECT_EQ(layout_.own_offset(0), 0);
  EXPECT_EQ(layout_.own_offset(1), 32);
}

TEST_F(ShardLayoutTest, GatherSetsGapsToZero) {
  std::vector<float> own(48, -1);
  layout_.Gather(model_->values(), own);
  EXPECT_THAT(std::vector(own.begin(), own.begin() + 3), ElementsAre(16, 17, 18));
  EXPECT_EQ(own[16], 32);
  EXPECT_THAT(std::vector(own.begin() + 17, own.begin() + 32), Each(0));
  EXPECT_THAT(std::vector(own.begin() + 32, own.begin() + 34), ElementsAre(48, 49));
  EXPECT_THAT(std::vector(own.begin() + 34, own.end()), Each(0));
}

TEST_F(ShardLayoutTest, ScatterChangesItsParametersAlone) {
  const std::vector<float> own(48, -1);
  std::vector<float> model(model_->values().begin(), model_->values().end());
  layout_.Scatter(own, model);
  EXPECT_EQ(std::ranges::count(model, -1), 17 + 2);
  EXPECT_EQ(model[0], 0);
  EXPECT_EQ(model[16], -1);
  EXPECT_EQ(model[32], -1);
  EXPECT_EQ(model[33], 33);
  EXPECT_EQ(model[48], -1);
  EXPECT_EQ(model[50], 50);
}

}  // namespace
}  // namespace ringtail
