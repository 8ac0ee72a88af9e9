#include "dist/gradients/gradient_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

constexpr int64_t kFloat = sizeof(float);

// An arena with a parameter of each size in `kib`, in KiB.
std::unique_ptr<ParameterArena> Arena(const std::vector<int64_t>& kib) {
  std::vector<ParameterSpec> specs;
  for (const int64_t k : kib) {
    specs.push_back({.name = "p" + std::to_string(specs.size()), .shape = {k * 1024 / kFloat}});
  }
  return std::move(*ParameterArena::Create(specs, {}));
}

std::vector<int64_t> KibOf(const std::vector<GradientBucket>& buckets) {
  std::vector<int64_t> kib;
  for (const GradientBucket& b : buckets) kib.push_back(b.range.count * kFloat / 1024);
  return kib;
}

std::vector<int64_t> Buckets(const std::vector<int64_t>& kib, const BucketOptions& options) {
  return KibOf(MakeGradientBuckets(Arena(kib)->parameters(), options));
}

constexpr BucketOptions kOptions{.bytes = 8 * 1024, .end_bytes = 2 * 1024};

TEST(GradientBucketsTest, TheFirstAndTheLastAreSmall) {
  EXPECT_THAT(Buckets({1, 1, 3, 3, 3, 3, 3, 1, 1}, kOptions), testing::ElementsAre(2, 9, 6, 2));
}

TEST(GradientBucketsTest, AParameterIsNeverCut) {
  EXPECT_THAT(Buckets({100}, kOptions), testing::ElementsAre(100));
  EXPECT_THAT(Buckets({1, 100, 1}, kOptions), testing::ElementsAre(101, 1));
  EXPECT_THAT(Buckets({5, 100, 100, 5}, kOptions), testing::ElementsAre(5, 100, 100, 5));
}

TEST(GradientBucketsTest, NoParametersHaveNoBuckets) {
  EXPECT_TRUE(MakeGradientBuckets({}, kOptions).empty());
}

// For any sizes: no hole, no overlap, every parameter in one bucket.
TEST(GradientBucketsTest, CoverTheBlock) {
  std::vector<ParameterSpec> specs;
  for (int i = 0; i < 60; ++i) {
    specs.push_back({.name = "p" + std::to_string(i), .shape = {1 + (i * 7919) % 3001}});
  }
  const auto arena = std::move(*ParameterArena::Create(specs, {}));
  for (const int64_t bytes : {1, 4096, 20'000, 1 << 30}) {
    const auto buckets =
        MakeGradientBuckets(arena->parameters(), {.bytes = bytes, .end_bytes = 5000});
    int64_t end = 0;
    size_t parameters = 0;
    for (const GradientBucket& bucket : buckets) {
      EXPECT_EQ(bucket.range.offset, end);
      EXPECT_EQ(arena->parameters()[parameters].offset, bucket.range.offset);
      EXPECT_GT(bucket.parameters, 0U);
      end = bucket.range.end();
      parameters += bucket.parameters;
    }
    const Parameter& last = arena->parameters().back();
    EXPECT_EQ(end, last.offset + last.elements);
    EXPECT_EQ(parameters, specs.size());
  }
}

}  // namespace
}  // namespace ringtail
