#include "layers/relayout.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

// Blocks from and to, and the shape.
using Case = std::tuple<int64_t, int64_t, BlobDesc>;
class RelayoutTest : public testing::TestWithParam<Case> {};

TEST_P(RelayoutTest, KeepsEveryElementAndZeroesPadding) {
  auto [from_block, to_block, from] = GetParam();
  BlobDesc to = from;
  from.block = from_block;
  to.block = to_block;
  const std::vector<float> plain = RandomPlain(from, /*seed=*/7);
  GuardedBuffer src(from.bytes()), dst(to.bytes()), expected(to.bytes());
  CopyToLayout(plain, from, src.floats());
  CopyToLayout(plain, to, expected.floats());
  Relayout(from, src.floats(), to, dst.floats());
  for (int64_t i = 0; i < to.elements(); ++i) {
    ASSERT_EQ(dst.floats()[i], expected.floats()[i]) << "element " << i;
  }
  EXPECT_TRUE(dst.GuardsIntact());
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, RelayoutTest,
    testing::Combine(testing::Values(1, 8, 16), testing::Values(1, 8, 16),
                     testing::Values(BlobDesc{1, 3, 5, 7}, BlobDesc{2, 16, 9, 9},
                                     BlobDesc{3, 17, 1, 1}, BlobDesc{2, 32, 1, 1},
                                     BlobDesc{2, 40, 11, 13}, BlobDesc{4, 64, 32, 32})));

TEST(SameLayoutTest, BlocksOfSinglePixelsAreContiguousWhenWhole) {
  EXPECT_TRUE(SameLayout({2, 32, 1, 1, 1}, {2, 32, 1, 1, 16}));
  EXPECT_FALSE(SameLayout({2, 24, 1, 1, 1}, {2, 24, 1, 1, 16}));
  EXPECT_FALSE(SameLayout({2, 32, 1, 2, 1}, {2, 32, 1, 2, 16}));
  EXPECT_FALSE(SameLayout({2, 32, 1, 1, 1}, {2, 16, 1, 1, 1}));
}

}  // namespace
}  // namespace ringtail
