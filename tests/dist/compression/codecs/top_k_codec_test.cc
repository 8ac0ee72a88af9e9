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

constexpr ValueFormat kExactFormats[] = {ValueFormat::kFloat, ValueFormat::kHalf,
                                         ValueFormat::kBfloat16};
constexpr ValueFormat kLevelFormats[] = {ValueFormat::kLevels4, ValueFormat::kLevels8};
constexpr ValueFormat kFormats[] = {ValueFormat::kFloat, ValueFormat::kHalf, ValueFormat::kBfloat16,
                                    ValueFormat::kLevels4, ValueFormat::kLevels8};

// Of exact formats.
std::vector<float> Narrowed(ValueFormat format, const std::vector<float>& values) {
  if (format == ValueFormat::kFloat) return values;
  const CastCodec cast(
      {.format = format == ValueFormat::kHalf ? CastFormat::kFp16 : CastFormat::kBf16});
  const GradientShape shape = VectorShape(std::ssize(values));
  return Decoded(cast, shape, {}, Encoded(cast, shape, {}, values));
}

std::vector<int> BytesOf(std::span<const std::byte> payload) {
  std::vector<int> bytes;
  for (const std::byte b : payload) bytes.push_back(std::to_integer<int>(b));
  return bytes;
}

// The example of the header. b = 1: upper parts 0 and 1 are bits 0 and 1 + 1, lower parts 1 and 1.
TEST(TopKCodec, WritesValuesAndThenPlaces) {
  const TopKCodec codec({.density = 0.3});
  const std::vector<float> gradient{0.1f, -3, 0.2f, 2, 0, -0.3f};
  const auto payload = Encoded(codec, VectorShape(6), {}, gradient);
  EXPECT_THAT(BytesOf(payload), testing::ElementsAre(0, 0, 0x40, 0xc0, 0, 0, 0, 0x40, 0b101, 0b11));
  EXPECT_EQ(Decoded(codec, VectorShape(6), {}, payload), (std::vector<float>{0, -3, 0, 2, 0, 0}));
  EXPECT_EQ(codec.Describe(), "the largest 30% as f32");
}

// The example of sparse_entries.h: places 3, 17 and 40, values 0.5, -2.25 and 0.75.
TEST(TopKCodec, WritesNarrowValues) {
  std::vector<float> gradient(50);
  gradient[3] = 0.5f;
  gradient[17] = -2.25f;
  gradient[40] = 0.75f;
  const auto bytes = [&](ValueFormat format) {
    const TopKCodec codec({.density = 0.06, .values = format});
    return BytesOf(Encoded(codec, VectorShape(50), {}, gradient));
  };
  // Upper parts 0, 2 and 5, at bits 0, 3 and 7; lower parts 3, 1 and 0, of three bits each.
  EXPECT_THAT(bytes(ValueFormat::kHalf), testing::ElementsAre(0x00, 0x38, 0x80, 0xc0, 0x00, 0x3a,
                                                              0b1000'1001, 0, 0b001'011, 0));
  EXPECT_THAT(
      bytes(ValueFormat::kBfloat16),
      testing::ElementsAre(0x00, 0x3f, 0x10, 0xc0, 0x40, 0x3f, 0b1000'1001, 0, 0b001'011, 0));
  // Range 0.5 to 2.25, r = 4.5^(1/4) = 1.456: codes 0, 3 (negative) and 1.
  EXPECT_THAT(
      bytes(ValueFormat::kLevels4),
      testing::ElementsAre(0x00, 0x3f, 0x10, 0x40, 0b10'111'000, 0, 0b1000'1001, 0, 0b001'011, 0));
  const TopKCodec codec({.density = 0.06, .values = ValueFormat::kLevels4});
  const auto decoded =
      Decoded(codec, VectorShape(50), {}, Encoded(codec, VectorShape(50), {}, gradient));
  EXPECT_FLOAT_EQ(decoded[3], 0.5F * std::pow(4.5F, 1.0F / 8));
  EXPECT_FLOAT_EQ(decoded[17], -0.5F * std::pow(4.5F, 7.0F / 8));
  EXPECT_FLOAT_EQ(decoded[40], 0.5F * std::pow(4.5F, 3.0F / 8));
}

// As the owner of a part of the gradient does with the sum of all ranks, which read as many entries.
TEST(TopKCodec, SendsMoreOfASum) {
  constexpr int64_t kElements = 1000;
  const auto gradient = NormalGradient(kElements, 1);
  const TopKCodec codec({.density = 0.01, .sum_density = 0.04});
  const TopKCodec dense({.density = 0.04}), sparse({.density = 0.01});
  EXPECT_EQ(codec.Describe(), "the largest 1%, of sums 4%, as f32");
  const GradientShape shape = VectorShape(kElements);
  for (const int ranks : {1, 2, 8}) {
    const EncodeContext context{.shape = shape, .summands = ranks};
    const TopKCodec& same = ranks > 1 ? dense : sparse;
    ASSERT_EQ(codec.PayloadBytes(context), same.PayloadBytes(context));
    const auto payload = Encoded(codec, shape, context, gradient);
    EXPECT_EQ(BytesOf(payload), BytesOf(Encoded(same, shape, context, gradient)));
    EXPECT_EQ(Decoded(codec, shape, context, payload), Decoded(same, shape, context, payload));
  }
}

// The places of k of n elements take at most k (2 + log2(n / k)) bits.
TEST(TopKCodec, PlacesTakeTheBitsOfTheirDensity) {
  for (const double density : {0.0003, 0.001, 0.01, 0.1, 0.5, 1.0}) {
    constexpr int64_t kElements = 1'000'000;
    const TopKCodec codec({.density = density, .values = ValueFormat::kLevels4});
    const double k = density * kElements;
    const auto bits =
        static_cast<double>(8 * codec.PayloadBytes({.shape = VectorShape(kElements)}));
    EXPECT_LE(bits, k * (3 + 2 - std::log2(density)) + 64) << density;
    EXPECT_GE(bits, k * (3 + 1 - std::log2(density))) << density;
  }
}

TEST(TopKCodec, KeepsTheLargestAndNothingElse) {
  constexpr int64_t kElements = 40'000;
  const auto gradient = NormalGradient(kElements, 1);
  std::vector<float> sizes;
  sizes.reserve(kElements);
  for (const float g : gradient) sizes.push_back(std::fabs(g));
  std::sort(sizes.rbegin(), sizes.rend());
  for (const ValueFormat format : kExactFormats) {
    const std::vector<float> narrowed = Narrowed(format, gradient);
    for (const double density : {0.0001, 0.01, 0.3, 1.0}) {
      const TopKCodec codec({.density = density, .values = format});
      const auto payload = Encoded(codec, VectorShape(kElements), {}, gradient);
      const auto k = static_cast<int64_t>(std::ceil(density * kElements));
      const auto decoded = Decoded(codec, VectorShape(kElements), {}, payload);
      for (int64_t i = 0; i < kElements; ++i) {
        const bool kept = std::fabs(gradient[i]) >= sizes[k - 1];
        ASSERT_EQ(decoded[i], kept ? narrowed[i] : 0.0f);
      }
    }
  }
}

// The largest, with their signs, wrong by at most r^(1/2), where r^L is the largest over the
// smallest (and what the ends lose when they are cut to 16 bits).
TEST(TopKCodec, LevelsKeepTheMagnitude) {
  constexpr int64_t kElements = 40'000;
  const auto gradient = NormalGradient(kElements, 1);
  for (const auto& [format, levels] :
       {std::pair(ValueFormat::kLevels4, 4), {ValueFormat::kLevels8, 8}}) {
    for (const double density : {0.001, 0.01}) {
      const GradientShape shape = VectorShape(kElements);
      const TopKCodec exact({.density = density}), codec({.density = density, .values = format});
      const auto all = Decoded(exact, shape, {}, Encoded(exact, shape, {}, gradient));
      const auto decoded = Decoded(codec, shape, {}, Encoded(codec, shape, {}, gradient));
      float least = INFINITY, most = 0;
      for (const float g : all) {
        if (g != 0) least = std::min(least, std::fabs(g));
        most = std::max(most, std::fabs(g));
      }
      const double worst = std::pow(double{most} / double{least}, 0.5 / levels) * 1.01;
      for (int64_t i = 0; i < kElements; ++i) {
        ASSERT_EQ(decoded[i] != 0, all[i] != 0);
        if (all[i] == 0) continue;
        ASSERT_LE(decoded[i] / all[i], worst);
        ASSERT_GE(decoded[i] / all[i], 1 / worst);
      }
    }
  }
}

// What is further from the largest than levels reach waits for a later step.
TEST(TopKCodec, LevelsLeaveOutWhatIsFarBelowTheLargest) {
  const std::vector<float> gradient{1, -16, 0.99f, 0, 5, 1e-35f};
  const TopKCodec codec({.density = 1, .values = ValueFormat::kLevels4});
  const auto decoded =
      Decoded(codec, VectorShape(6), {}, Encoded(codec, VectorShape(6), {}, gradient));
  EXPECT_FLOAT_EQ(decoded[0], std::sqrt(2.0F));
  EXPECT_FLOAT_EQ(decoded[1], -std::sqrt(128.0F));
  EXPECT_FLOAT_EQ(decoded[4], std::sqrt(32.0F));
  EXPECT_EQ(decoded[2], 0);
  EXPECT_EQ(decoded[3], 0);
  EXPECT_EQ(decoded[5], 0);
}

TEST(TopKCodec, ZerosAreNotSent) {
  for (const ValueFormat format : kFormats) {
    const TopKCodec codec({.density = 0.5, .values = format});
    const auto zeros = Encoded(codec, VectorShape(100), {}, std::vector<float>(100));
    EXPECT_THAT(BytesOf(zeros), testing::Each(0));
    EXPECT_EQ(Decoded(codec, VectorShape(100), {}, zeros), std::vector<float>(100));
    std::vector<float> one(100);
    one[99] = -4;
    EXPECT_EQ(Decoded(codec, VectorShape(100), {}, Encoded(codec, VectorShape(100), {}, one)), one);
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

// 2 of 6 elements: values of 8 bytes, upper parts of 4 bits, lower parts of 1 bit.
TEST(TopKCodec, RefusesPlacesOutOfOrderOrOutside) {
  const TopKCodec codec({.density = 0.3});
  const auto try_places = [&](int upper, int lower) {
    auto payload = Encoded(codec, VectorShape(6), {}, std::vector<float>{1, 2, 3, 4, 5, 6});
    payload[8] = static_cast<std::byte>(upper);
    payload[9] = static_cast<std::byte>(lower);
    std::vector<float> sum(6);
    return codec.DecodeAdd({.shape = VectorShape(6)}, payload, 1, sum);
  };
  EXPECT_TRUE(try_places(0b101, 0b11).ok());  // 1 and 3
  EXPECT_TRUE(try_places(0b11, 0b10).ok());   // 0 and 1
  EXPECT_THAT(try_places(0b11, 0b01).message(), HasSubstr("place 0 of 6, after one for place 1"));
  EXPECT_THAT(try_places(0b11, 0b11).message(), HasSubstr("place 1 of 6, after one for place 1"));
  EXPECT_THAT(try_places(0b10001, 0b10).message(), HasSubstr("place 7 of 6"));
  EXPECT_THAT(try_places(0b111, 0b10).message(), HasSubstr("more than 2 entries"));
  EXPECT_THAT(try_places(0b1, 0b10).message(), HasSubstr("1 entries has more places"));
  EXPECT_THAT(try_places(0b1, 0b1).message(), HasSubstr("more values than places"));
}

TEST(TopKCodec, RefusesRangesThatAreNone) {
  for (const ValueFormat format : kLevelFormats) {
    const TopKCodec codec({.density = 0.3, .values = format});
    const auto valid = Encoded(codec, VectorShape(6), {}, std::vector<float>{1, 2, 3, 4, 5, 6});
    const auto try_range = [&](uint16_t least, uint16_t most) {
      auto payload = valid;
      std::memcpy(&payload[0], &least, 2);
      std::memcpy(&payload[2], &most, 2);
      std::vector<float> sum(6);
      return codec.DecodeAdd({.shape = VectorShape(6)}, payload, 1, sum).ok();
    };
    EXPECT_TRUE(try_range(0x3f80, 0x4000));   // 1 to 2
    EXPECT_FALSE(try_range(0x4000, 0x3f80));  // 2 to 1
    EXPECT_FALSE(try_range(0, 0x3f80));
    EXPECT_FALSE(try_range(0, 0));
    EXPECT_FALSE(try_range(0x3f80, 0x7f80));  // to infinity
    EXPECT_FALSE(try_range(0x3f80, 0x7fc0));
    EXPECT_TRUE(try_range(0x7fc0, 0x7fc0));   // an element was not finite
    EXPECT_FALSE(try_range(0xbf80, 0x3f80));  // from -1
    EXPECT_FALSE(try_range(0x3f80, 0x4f80));  // to 2^32
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
