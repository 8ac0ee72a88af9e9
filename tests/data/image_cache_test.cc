#include "data/image_cache.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/data/test_images.h"

namespace ringtail {
namespace {

constexpr int64_t kImageBytes = 10 * 8 * kChannels;

ImageHeader Header(int32_t width = 10, int32_t height = 8) {
  ImageHeader header;
  header.width = width;
  header.height = height;
  return header;
}

TEST(ImageCacheTest, FindsInsertedImages) {
  ImageCache cache(10 * kImageBytes);
  EXPECT_FALSE(cache.FindHeader(3).has_value());
  ASSERT_TRUE(cache.Reserve(kImageBytes));
  Image image = DrawImage(10, 8);
  const std::vector<uint8_t> pixels = image.pixels;
  const Image* kept = cache.Insert(3, Header(), 1, &image);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->pixels, pixels);
  EXPECT_EQ(cache.FindHeader(3), Header());
  EXPECT_EQ(cache.Find(3, 1), kept);
  EXPECT_EQ(cache.Find(3, 2), nullptr);
  EXPECT_EQ(cache.Find(4, 1), nullptr);
  const CacheStatistics statistics = cache.statistics();
  EXPECT_EQ(statistics.hits, 1);
  EXPECT_EQ(statistics.misses, 3);
  EXPECT_EQ(statistics.images, 1);
  EXPECT_EQ(statistics.bytes, kImageBytes);
}

TEST(ImageCacheTest, NeverExceedsItsBudgetAndEvictsNothing) {
  ImageCache cache(2 * kImageBytes + 1);
  for (int64_t sample = 0; sample < 2; ++sample) {
    ASSERT_TRUE(cache.Reserve(kImageBytes));
    Image image = DrawImage(10, 8);
    cache.Insert(sample, Header(), 1, &image);
  }
  EXPECT_FALSE(cache.Reserve(kImageBytes));
  EXPECT_TRUE(cache.Reserve(1));
  EXPECT_FALSE(cache.Reserve(1));
  cache.Release(1);
  EXPECT_TRUE(cache.Reserve(1));
  EXPECT_NE(cache.Find(0, 1), nullptr);
  EXPECT_EQ(cache.statistics().bytes, 2 * kImageBytes);
}

TEST(ImageCacheTest, WithoutABudgetNothingIsKept) {
  ImageCache cache(0);
  EXPECT_FALSE(cache.Reserve(1));
  EXPECT_FALSE(cache.FindHeader(0).has_value());
}

TEST(ImageCacheTest, TheSlowerOfTwoThreadsReleasesItsReservation) {
  ImageCache cache(2 * kImageBytes);
  ASSERT_TRUE(cache.Reserve(kImageBytes));
  ASSERT_TRUE(cache.Reserve(kImageBytes));
  Image first = DrawImage(10, 8), second = first;
  const Image* kept = cache.Insert(0, Header(), 1, &first);
  EXPECT_EQ(cache.Insert(0, Header(), 1, &second), kept);
  EXPECT_EQ(cache.statistics().images, 1);
  EXPECT_TRUE(cache.Reserve(kImageBytes));
}

TEST(ImageCacheTest, AReplacedFileIsNotMixedWithTheOldOne) {
  ImageCache cache(10 * kImageBytes);
  ASSERT_TRUE(cache.Reserve(2 * kImageBytes));
  Image before = DrawImage(10, 8), after = DrawImage(8, 10);
  cache.Insert(0, Header(10, 8), 1, &before);
  EXPECT_EQ(cache.Insert(0, Header(8, 10), 2, &after), nullptr);
  EXPECT_EQ(after.width, 8);  // still owned by the caller
  EXPECT_EQ(cache.FindHeader(0), Header(10, 8));
  EXPECT_EQ(cache.Find(0, 2), nullptr);
}

TEST(ImageCacheTest, ManyThreads) {
  constexpr int64_t kSamples = 50;
  constexpr int kThreads = 4;
  ImageCache cache(kSamples / 2 * kImageBytes);
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int64_t sample = 0; sample < kSamples; ++sample) {
        const Image* found = cache.Find(sample, 1);
        if (found == nullptr && cache.Reserve(kImageBytes)) {
          Image image = DrawImage(10, 8, sample);
          found = cache.Insert(sample, Header(), 1, &image);
        }
        if (found != nullptr) {
          EXPECT_EQ(found->pixels, DrawImage(10, 8, sample).pixels);
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(cache.statistics().images, kSamples / 2);
  EXPECT_EQ(cache.statistics().hits + cache.statistics().misses, 4 * kSamples);
}

}  // namespace
}  // namespace ringtail
