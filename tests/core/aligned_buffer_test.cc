#include "core/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace ringtail {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

TEST(AlignedBuffer, IsZeroedAndAligned) {
  for (const size_t bytes :
       {size_t{1}, size_t{63}, size_t{4096}, kHugePage - 1, kHugePage, kHugePage + 4}) {
    const AlignedBuffer buffer(bytes);
    ASSERT_EQ(buffer.size_bytes(), bytes);
    const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % alignment, 0u) << bytes;
    EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + bytes, [](std::byte b) {
      return b == std::byte{0};
    })) << bytes;
  }
}

TEST(AlignedBuffer, ReusedMemoryIsZeroed) {
  for (int i = 0; i < 10; ++i) {
    const AlignedBuffer buffer(1000);
    EXPECT_EQ(std::ranges::count(buffer.floats(), 0.0f), 250);
    std::ranges::fill(buffer.floats(), 7.0f);
  }
}

TEST(AlignedBuffer, EmptyHasNoMemory) {
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
  EXPECT_TRUE(AlignedBuffer(0).floats().empty());
}

TEST(AlignedBuffer, MovesItsMemory) {
  AlignedBuffer first(8), second(16);
  std::byte* const memory = first.data();
  second = std::move(first);
  EXPECT_EQ(second.data(), memory);
  EXPECT_EQ(second.size_bytes(), 8u);
  // NOLINTNEXTLINE(bugprone-use-after-move): that it is empty then is the contract
  EXPECT_EQ(first.data(), nullptr);
  const AlignedBuffer third(std::move(second));
  EXPECT_EQ(third.data(), memory);
  EXPECT_EQ(second.data(), nullptr);  // NOLINT(bugprone-use-after-move)
}

TEST(AlignedBufferDeathTest, ReportsTheSizeThatCouldNotBeAllocated) {
  EXPECT_DEATH(AlignedBuffer(size_t{1} << 60), "cannot allocate 1099511627776 MiB");
  EXPECT_DEATH(AlignedBuffer{std::numeric_limits<size_t>::max()}, "out of memory");
}

}  // namespace
}  // namespace ringtail
