#include "dist/gradients/dense_reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

TEST(DenseReducer, SumsAndMeasuresWhatARankContributes) {
  const World world = MakeSharedMemoryWorld(2);
  OnEveryRank(2, [&](int rank) {
    const auto communicator = std::move(
        *Communicator::Create(world[rank].get(), Topology::Blocks(2, 1), {.algorithm = "ring"}));
    DenseReducer reducer;
    const float own = rank == 0 ? 2 : 3;
    for (const bool measures : {true, false, true}) {
      reducer.BeginStep(measures);
      for (size_t bucket = 0; bucket < 2; ++bucket) {
        std::vector<float> gradients(5, own);
        ASSERT_TRUE(reducer.Reduce(communicator.get(), bucket, gradients).ok());
        EXPECT_THAT(gradients, testing::Each(5));
      }
      EXPECT_EQ(reducer.own_squares(), measures ? 2 * 5 * own * own : 0);
    }
  });
}

}  // namespace
}  // namespace ringtail
