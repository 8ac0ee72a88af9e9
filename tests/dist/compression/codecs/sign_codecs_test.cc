// One bit per element: 1-bit SGD, sign, majority vote.
#include <gtest/gtest.h>

#include <cmath>

#include "dist/compression/codecs/one_bit_codec.h"
#include "dist/compression/codecs/sign_codec.h"
#include "tests/dist/compression/codec_runner.h"

namespace ringtail {
namespace {

TEST(OneBitCodec, IsTheMeanOfItsSign) {
  const Floats gradient = MixedGradient(1300);
  const Floats decoded = RoundTrip(OneBitCodec(), gradient);
  for (size_t begin = 0; begin < gradient.size(); begin += 512) {
    const size_t end = std::min(begin + 512, gradient.size());
    double sums[2] = {}, counts[2] = {};
    for (size_t i = begin; i < end; ++i) {
      sums[std::signbit(gradient[i]) ? 1 : 0] += gradient[i];
      counts[std::signbit(gradient[i]) ? 1 : 0] += 1;
    }
    for (size_t i = begin; i < end; ++i) {
      const int sign = std::signbit(gradient[i]) ? 1 : 0;
      const double mean = sums[sign] / counts[sign];
      ASSERT_NEAR(decoded[i], mean, 1e-6 * std::abs(mean)) << i;
    }
  }
}

TEST(OneBitCodec, PayloadIsAsDrawnInTheHeader) {
  const Payload payload = Encode(OneBitCodec(), {1, -2, 3, -4, 5, 6, 7, 8, -3});
  ASSERT_EQ(payload.size(), 8 + 2U);
  EXPECT_EQ(FloatAt(payload, 0), 5);
  EXPECT_EQ(FloatAt(payload, 4), 3);
  EXPECT_EQ(ByteAt(payload, 8), 0x0a);
  EXPECT_EQ(ByteAt(payload, 9), 0x01);
}

TEST(OneBitCodec, WithoutNegativesTheirMeanIsZero) {
  const Payload payload = Encode(OneBitCodec(), {1, 2, 3});
  EXPECT_EQ(FloatAt(payload, 0), 2);
  EXPECT_EQ(FloatAt(payload, 4), 0);
}

TEST(OneBitCodec, RefusesWhatEncodeCannotHaveWritten) {
  const OneBitCodec codec;
  const Payload valid = Encode(codec, GaussianGradient(601));
  for (const size_t offset : {0, 4, 8, 12}) {
    for (const float mean : {-1.0F, INFINITY, 1e-35F, -std::nanf(""), std::nanf("")}) {
      Payload payload = valid;  // a scale may be std::nanf(""), but not only one of two means
      SetFloat(mean, offset, &payload);
      EXPECT_EQ(DecodeStatus(codec, payload, 601).code(), StatusCode::kDataLoss) << mean;
    }
  }
  Payload payload = valid;
  payload.back() |= std::byte{0x80};
  EXPECT_EQ(DecodeStatus(codec, payload, 601).code(), StatusCode::kDataLoss);
}

TEST(SignCodec, IsTheMeanSizeWithItsSign) {
  const Floats gradient = MixedGradient(2501);
  double size = 0;
  for (const float x : gradient) size += std::abs(x) / 2501.0;
  const Floats decoded = RoundTrip(SignCodec({}), gradient);
  for (size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_NEAR(decoded[i], std::copysign(size, gradient[i]), 1e-6 * size) << i;
  }
}

TEST(SignCodec, PayloadIsAsDrawnInTheHeader) {
  const Payload payload = Encode(SignCodec({}), {1, -2, 3, -4, 5, 6, 7, 8, -9});
  ASSERT_EQ(payload.size(), 4 + 2U);
  EXPECT_EQ(FloatAt(payload, 0), 5);
  EXPECT_EQ(ByteAt(payload, 4), 0x0a);
  EXPECT_EQ(ByteAt(payload, 5), 0x01);
}

TEST(SignCodec, RefusesWhatEncodeCannotHaveWritten) {
  const SignCodec codec({});
  Payload payload = Encode(codec, GaussianGradient(101));
  payload.back() |= std::byte{0x40};
  EXPECT_EQ(DecodeStatus(codec, payload, 101).code(), StatusCode::kDataLoss);
  payload = Encode(codec, GaussianGradient(101));
  SetFloat(-1, 0, &payload);
  EXPECT_EQ(DecodeStatus(codec, payload, 101).code(), StatusCode::kDataLoss);
}

// Gradients of three or four ranks, decoded together.
Floats SumOf(const Codec& codec, const std::vector<Floats>& gradients) {
  std::vector<Payload> payloads;
  for (const Floats& gradient : gradients) payloads.push_back(Encode(codec, gradient));
  const std::vector<std::span<const std::byte>> views(payloads.begin(), payloads.end());
  Floats sum(gradients[0].size(), 100);
  const Status status = codec.DecodeSum(ContextOf(std::ssize(sum)), views, sum);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return sum;
}

TEST(SignCodec, AddsRanks) {
  const std::vector<Floats> gradients = {{1, 1, -1}, {1, -1, 1}, {-4, 4, 4}};
  EXPECT_EQ(SumOf(SignCodec({}), gradients), (Floats{98, 104, 104}));
}

TEST(SignCodec, TheMajorityDecides) {
  const SignCodec codec({.majority_vote = true});
  EXPECT_EQ(SumOf(codec, {{1, 1, -1}, {1, -1, 1}, {-4, 4, 4}}), (Floats{106, 106, 106}));
  EXPECT_EQ(SumOf(codec, {{1, -1}, {1, -1}, {1, 1}, {-1, -1}}), (Floats{104, 96}));
  EXPECT_EQ(SumOf(codec, {{1, -1}, {-1, -1}}), (Floats{100, 98})) << "a tie is 0";
}

TEST(SignCodec, TheMajorityDecidesInLongGradients) {
  std::vector<Floats> gradients;
  for (uint64_t rank = 0; rank < 5; ++rank) gradients.push_back(GaussianGradient(9001, rank));
  double size = 0;
  for (const Floats& gradient : gradients) {
    for (const float x : gradient) size += std::abs(x) / 9001.0;
  }
  const Floats sum = SumOf(SignCodec({.majority_vote = true}), gradients);
  for (size_t i = 0; i < sum.size(); ++i) {
    int votes = 0;
    for (const Floats& gradient : gradients) votes += gradient[i] < 0 ? -1 : 1;
    ASSERT_NEAR(sum[i], 100 + (votes < 0 ? -size : size), 1e-4) << i;
  }
}

TEST(SignCodec, ABadPayloadNamesItsRank) {
  const SignCodec codec({.majority_vote = true});
  const Payload good = Encode(codec, GaussianGradient(100)), bad(good.size(), std::byte{0xff});
  const std::span<const std::byte> payloads[] = {good, bad};
  Floats sum(100);
  const Status status = codec.DecodeSum(ContextOf(100), payloads, sum);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.message().substr(0, 7), "rank 1:");
}

}  // namespace
}  // namespace ringtail
