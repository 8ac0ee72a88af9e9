#include "dist/compression/codecs/top_k_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "dist/compression/codecs/cast_codec.h"
#include "tests/dist/compression/sparse_gradients.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr ValueFormat kFormats[] = {ValueFormat::kFloat, ValueFormat::kHalf,
                                    ValueFormat::kBfloat16};

std::vector<float> Narrowed(ValueFormat format, const std::vector<float>& values) {
  if (format == ValueFormat::kFloat) return values;
  const CastCodec cast(
      {.format = format == ValueFormat::kHalf ? CastFormat::kFp16 : CastFormat::kBf16});
  const GradientShape shape = VectorShape(std::ssize(values));
  return Decoded(cast, shape, {}, Encoded(cast, shape, {}, values));
}

// The example of the header, byte by byte.
TEST(TopKCodec, WritesPlacesAndThenValues) {
  const TopKCodec codec({.density = 0.3});
  const std::vector<float> gradient{0.1f, -3, 0.2f, 2, 0, -0.3f};
  const auto payload = Encoded(codec, VectorShape(6), {}, gradient);
  ASSERT_EQ(payload.size(), 16);
  int32_t places[2];
  float values[2];
  std::memcpy(places, &payload[0], 8);
  std::memcpy(values, &payload[8], 8);
  EXPECT_THAT(places, testing::ElementsAre(1, 3));
  EXPECT_THAT(values, testing::ElementsAre(-3, 2));
  EXPECT_EQ(Decoded(codec, VectorShape(6), {}, payload), (std::vector<float>{0, -3, 0, 2, 0, 0}));
  EXPECT_EQ(codec.Describe(), "the largest 30% as f32");
}

// The example of sparse_entries.h: places 3, 17 and 40, values 0.5, -2.25 and 0.75.
TEST(TopKCodec, WritesNarrowValuesAfterThePlaces) {
  std::vector<float> gradient(50);
  gradient[3] = 0.5f;
  gradient[17] = -2.25f;
  gradient[40] = 0.75f;
  const auto bytes = [&](ValueFormat format) {
    const TopKCodec codec({.density = 0.06, .values = format});
    std::vector<int> bytes;
    for (const std::byte b : Encoded(codec, VectorShape(50), {}, gradient)) {
      bytes.push_back(std::to_integer<int>(b));
    }
    return bytes;
  };
  EXPECT_THAT(bytes(ValueFormat::kHalf),
              testing::ElementsAre(3, 0, 0, 0, 0x11, 0, 0, 0, 0x28, 0, 0, 0,  //
                                   0x00, 0x38, 0x80, 0xc0, 0x00, 0x3a));
  EXPECT_THAT(bytes(ValueFormat::kBfloat16),
              testing::ElementsAre(3, 0, 0, 0, 0x11, 0, 0, 0, 0x28, 0, 0, 0,  //
                                   0x00, 0x3f, 0x10, 0xc0, 0x40, 0x3f));
}

TEST(TopKCodec, KeepsTheLargestAndNothingElse) {
  constexpr int64_t kElements = 40'000;
  const auto gradient = NormalGradient(kElements, 1);
  std::vector<float> sizes;
  sizes.reserve(kElements);
  for (const float g : gradient) sizes.push_back(std::fabs(g));
  std::sort(sizes.rbegin(), sizes.rend());
  for (const ValueFormat format : kFormats) {
    const std::vector<float> narrowed = Narrowed(format, gradient);
    for (const double density : {0.0001, 0.01, 0.3, 1.0}) {
      const TopKCodec codec({.density = density, .values = format});
      const auto payload = Encoded(codec, VectorShape(kElements), {}, gradient);
      const auto k = static_cast<int64_t>(std::ceil(density * kElements));
      ASSERT_EQ(payload.size(), k * (format == ValueFormat::kFloat ? 8 : 6));
      const auto decoded = Decoded(codec, VectorShape(kElements), {}, payload);
      for (int64_t i = 0; i < kElements; ++i) {
        const bool kept = std::fabs(gradient[i]) >= sizes[k - 1];
        ASSERT_EQ(decoded[i], kept ? narrowed[i] : 0.0f);
      }
    }
  }
}

TEST(TopKCodec, AddsWithAScale) {
  const TopKCodec codec({.density = 0.5});
  const auto payload = Encoded(codec, VectorShape(4), {}, std::vector<float>{1, -4, 2, 0.5f});
  std::vector<float> sum{1, 1, 1, 1};
  ASSERT_TRUE(codec.DecodeAdd({.shape = VectorShape(4)}, payload, -0.5f, sum).ok());
  EXPECT_EQ(sum, (std::vector<float>{1, 3, 0, 1}));
}

TEST(TopKCodec, AnEmptyGradientHasAnEmptyPayload) {
  const TopKCodec codec({.density = 0.01});
  EXPECT_EQ(codec.PayloadBytes({.shape = VectorShape(0)}), 0);
  EXPECT_TRUE(Decoded(codec, VectorShape(0), {}, Encoded(codec, VectorShape(0), {}, {})).empty());
}

TEST(TopKCodec, AKeptResidualArrivesAndADroppedOneDoesNot) {
  const auto gradient = NormalGradient(2000, 2);
  for (const ValueFormat format : kFormats) {
    const TopKCodec codec({.density = 0.1, .values = format});
    const Feedback kept = SendRepeatedly(codec, VectorShape(2000), gradient, 400, true);
    EXPECT_LT(kept.unaccounted, 1e-5);
    EXPECT_LT(kept.error, 0.03);
    // 10% of normal numbers have 44% of their squares.
    EXPECT_GT(SendRepeatedly(codec, VectorShape(2000), gradient, 400, false).error, 0.6);
  }
}

TEST(TopKCodec, RefusesPlacesOutOfOrderOrOutside) {
  const TopKCodec codec({.density = 0.5});
  const auto try_places = [&](int32_t a, int32_t b) {
    auto payload = Encoded(codec, VectorShape(4), {}, std::vector<float>{1, 2, 3, 4});
    std::memcpy(&payload[0], &a, 4);
    std::memcpy(&payload[4], &b, 4);
    std::vector<float> sum(4);
    return codec.DecodeAdd({.shape = VectorShape(4)}, payload, 1, sum);
  };
  EXPECT_TRUE(try_places(0, 3).ok());
  EXPECT_THAT(try_places(3, 0).message(), HasSubstr("place 0 of 4, after one for place 3"));
  for (const auto& [a, b] : {std::pair(1, 1), {0, 4}, {-1, 2}, {0, INT32_MAX}, {INT32_MIN, 0}}) {
    EXPECT_EQ(try_places(a, b).code(), StatusCode::kDataLoss) << a << ", " << b;
  }
}

TEST(TopKCodec, HostilePayloads) {
  for (const ValueFormat format : kFormats) {
    const int refused =
        TryHostilePayloads(TopKCodec({.density = 0.1, .values = format}), FilterShape(10, 30), {});
    EXPECT_GT(refused, kHostilePayloads / 2);  // wrong lengths at least
    EXPECT_LT(refused, kHostilePayloads);      // another value is a payload
  }
}

}  // namespace
}  // namespace ringtail
