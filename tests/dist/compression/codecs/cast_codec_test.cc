#include "dist/compression/codecs/cast_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "tests/dist/compression/codec_runner.h"

namespace ringtail {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const CastCodec& Bf16() {
  static const CastCodec codec({.format = CastFormat::kBf16});
  return codec;
}
const CastCodec& Fp16() {
  static const CastCodec codec({.format = CastFormat::kFp16});
  return codec;
}

// The nearest number with `precision` bits and exponents of at least `lowest`; ties to even.
double Nearest(double x, int precision, int lowest) {
  if (x == 0) return x;
  const int exponent = std::max(std::ilogb(x), lowest);
  const double step = std::ldexp(1.0, exponent - precision + 1);
  return std::nearbyint(x / step) * step;
}

// Every exponent and sign, random mantissas, and all edge cases.
Floats AllKindsOfFloats() {
  Floats floats = {0.0F,          -0.0F,        65504,          65519.996F,   65520,
                   -65520,        1e30F,        3.4e38F,        0x1p-24F,     0x1p-25F,
                   0x1.8p-25F,    0x1p-149F,    0x1p-14F,       0x1.ffcp-15F, 0x1.ffep-15F,
                   0x1.ffffp-15F, 1 + 0x1p-11F, 1 + 0x1.8p-10F, 1 + 0x1p-8F,  1 + 0x1.8p-7F};
  Rng rng(RngKey(1).With(kTestStream));
  while (floats.size() < 300000) {
    const auto x = std::bit_cast<float>(rng.Bits());
    if (std::isfinite(x)) floats.push_back(x);
    // Near fp16's numbers and the midpoints between them.
    floats.push_back(std::ldexp(static_cast<float>(rng.Below(1 << 13)), -12 - 14 + 15) *
                     std::ldexp(1.0F, static_cast<int>(rng.Below(40)) - 20));
  }
  return floats;
}

TEST(CastCodec, Bf16IsTheNearest) {
  const Floats floats = AllKindsOfFloats(), decoded = RoundTrip(Bf16(), floats);
  for (size_t i = 0; i < floats.size(); ++i) {
    const double expected = Nearest(floats[i], 8, -126);
    ASSERT_EQ(decoded[i], static_cast<float>(expected)) << floats[i];
  }
}

TEST(CastCodec, Fp16IsTheNearestAndSaturates) {
  const Floats floats = AllKindsOfFloats(), decoded = RoundTrip(Fp16(), floats);
  for (size_t i = 0; i < floats.size(); ++i) {
    const double nearest = Nearest(floats[i], 11, -14);
    const double expected = std::min(std::max(nearest, -65504.0), 65504.0);
    ASSERT_EQ(decoded[i], static_cast<float>(expected)) << floats[i];
  }
}

TEST(CastCodec, EveryHalfIsRead) {
  Payload payload(2 * 65536);
  for (size_t i = 0; i < 65536; ++i) {
    payload[2 * i] = static_cast<std::byte>(i & 255);
    payload[2 * i + 1] = static_cast<std::byte>(i >> 8);
  }
  const Floats bf16 = Decode(Bf16(), payload, 65536), fp16 = Decode(Fp16(), payload, 65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto expected = std::bit_cast<float>(i << 16);
    ASSERT_TRUE(bf16[i] == expected || (std::isnan(bf16[i]) && std::isnan(expected))) << i;
    const double sign = (i & 0x8000) != 0 ? -1 : 1, mantissa = i & 0x3ff;
    const int exponent = static_cast<int>(i >> 10 & 31);
    if (exponent == 31) {
      ASSERT_TRUE(mantissa == 0 ? fp16[i] == sign * kInfinity : std::isnan(fp16[i])) << i;
    } else {
      const double value =
          exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
      ASSERT_EQ(fp16[i], sign * value) << i;
    }
  }
}

TEST(CastCodec, PayloadIsAsDrawnInTheHeader) {
  const Floats gradient = {1, -2, 0.5F};
  const uint8_t bf16[] = {0x80, 0x3f, 0x00, 0xc0, 0x00, 0x3f};
  const uint8_t fp16[] = {0x00, 0x3c, 0x00, 0xc0, 0x00, 0x38};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(ByteAt(Encode(Bf16(), gradient), i), bf16[i]);
    EXPECT_EQ(ByteAt(Encode(Fp16(), gradient), i), fp16[i]);
  }
}

TEST(CastCodec, KeepsNaNAndInfinity) {
  const Floats gradient = {kInfinity, -kInfinity, std::nanf(""), std::bit_cast<float>(0xff800001)};
  for (const CastCodec* codec : {&Bf16(), &Fp16()}) {
    const Floats decoded = RoundTrip(*codec, gradient);
    EXPECT_EQ(decoded[0], kInfinity);
    EXPECT_EQ(decoded[1], -kInfinity);
    EXPECT_TRUE(std::isnan(decoded[2]));
    EXPECT_TRUE(std::isnan(decoded[3]));
  }
}

TEST(CastCodec, SamplesScaleSumsIntoFp16sRange) {
  // The sum of gradients over 1024 samples: beyond 65504, though its mean is not.
  const Floats gradient = GaussianGradient(5000, 1, 1e5F);
  const CastCodec codec({.format = CastFormat::kFp16, .samples = 1024});
  const Floats decoded = RoundTrip(codec, gradient);
  for (size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_NEAR(decoded[i], gradient[i], std::abs(gradient[i]) * 0x1p-11 + 1024 * 0x1p-25);
  }
  EXPECT_GT(Distance(RoundTrip(Fp16(), gradient), gradient), 0.1 * Length(gradient));
}

// Steps of more and more batches lose no more than a step of one batch.
TEST(CastCodec, MoreBatchesInAStepStayInFp16sRange) {
  const CastCodec codec({.format = CastFormat::kFp16, .samples = 64});
  Floats gradient = GaussianGradient(5000, 1, 64 * 1e4F);  // sums; means up to 4e4, and down to:
  const Floats small = GaussianGradient(5000, 2, 64 * 1e-6F);
  gradient.insert(gradient.end(), small.begin(), small.end());
  const Floats decoded = RoundTrip(codec, gradient);
  for (size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_NEAR(decoded[i], gradient[i], std::abs(gradient[i]) * 0x1p-11 + 64 * 0x1p-25);
  }
  for (const float batches : {2.0F, 8.0F, 1024.0F}) {
    Floats grown = gradient, expected = decoded;
    for (float& x : grown) x *= batches;
    for (float& x : expected) x *= batches;
    EncodeContext context = kContext;
    context.batches = batches;
    const Payload payload = Encode(codec, grown, context);
    EXPECT_EQ(payload, Encode(codec, gradient)) << batches;
    EXPECT_EQ(Decode(codec, payload, std::ssize(grown), 1, context), expected) << batches;
  }
}

}  // namespace
}  // namespace ringtail
