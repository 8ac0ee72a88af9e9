#include "core/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace ringtail {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

TEST(AlignedBuffer, IsZeroedAndAligned) {
  for (const size_t bytes :
       {size_t{1}, size_t{63}, size_t{4096}, kHugePage - 1, kHugePage, kHugePage + 4}) {
    const AlignedBuffer buffer(bytes);
    ASSERT_EQ(buffer.size_bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u) << bytes;
    EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + bytes, [](std::byte b) {
      return b == std::byte{0};
    })) << bytes;
  }
}

// Otherwise loops that walk some of them together could throw one's lines out of the cache for another's.
TEST(AlignedBuffer, LargeOnesBeginAtDifferentPlacesOfTheirPages) {
  std::vector<AlignedBuffer> buffers;
  std::set<uintptr_t> pages, lines;
  for (int i = 0; i < 12; ++i) {
    const auto begin = reinterpret_cast<uintptr_t>(buffers.emplace_back(kHugePage).data());
    pages.insert(begin % kHugePage / 4096);
    lines.insert(begin % 4096);
  }
  EXPECT_EQ(pages.size(), buffers.size());
  EXPECT_EQ(lines.size(), buffers.size());
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
