#include "layers/scratch_layout.h"

#include <gtest/gtest.h>

#include <array>

namespace ringtail {
namespace {

TEST(ScratchLayoutTest, AreasStartOnCacheLinesAndDoNotOverlap) {
  ScratchLayout layout;
  EXPECT_EQ(layout.Add<double>(9), 0U);  // 72 bytes
  EXPECT_EQ(layout.Add<float>(0), 128U);
  EXPECT_EQ(layout.Add<float>(16), 128U);
  EXPECT_EQ(layout.AddBytes(1), 192U);
  EXPECT_EQ(layout.bytes(), 256U);
}

TEST(ScratchLayoutTest, ArraysLieAtTheirOffsets) {
  alignas(64) std::array<std::byte, 256> block{};
  EXPECT_EQ(static_cast<void*>(ArrayAt<float>(block.data(), 128)), block.data() + 128);
}

}  // namespace
}  // namespace ringtail
