// TernGrad and two bits, whose elements are +t, -t or 0.
#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "dist/compression/codecs/payload.h"
#include "dist/compression/codecs/terngrad_codec.h"
#include "dist/compression/codecs/two_bit_codec.h"
#include "tests/dist/compression/codec_runner.h"

namespace ringtail {
namespace {

double MeanOf(const Floats& gradient, double (*map)(double x)) {
  double sum = 0;
  for (const float x : gradient) sum += map(x);
  return sum / static_cast<double>(gradient.size());
}

double Largest(const Floats& gradient) {
  double largest = 0;
  for (const float x : gradient) largest = std::max(largest, std::abs(double{x}));
  return largest;
}

double ClippedAt(const Floats& gradient, double sigmas) {
  const double sigma = std::sqrt(MeanOf(gradient, [](double x) { return x * x; }));
  return std::min(Largest(gradient), sigmas * sigma);
}

TEST(TernGradCodec, DecodesToWhatIsDrawn) {
  const Floats gradient = GaussianGradient(2501);
  const TernGradCodec codec({});
  const double size = ClippedAt(gradient, 2.5);
  ASSERT_LT(size, Largest(gradient)) << "nothing is clipped";
  const Floats decoded = RoundTrip(codec, gradient);
  Rng rng(DrawKey(kContext));
  int undecided = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double draw = rng.Uniform(), probability = std::abs(gradient[i]) / size;
    if (std::abs(draw - probability) < 1e-6) {
      ++undecided;
      continue;
    }
    const double expected = draw < probability ? std::copysign(size, gradient[i]) : 0;
    ASSERT_NEAR(decoded[i], expected, 1e-6 * size) << i;
  }
  EXPECT_LT(undecided, 3);
}

// The mean of 4000 encodings is within 5 standard deviations of the (clipped) gradient; one is at
// most s / 2 over the square root of 4000. The most likely of -s, 0 and s is farther away.
void ExpectUnbiased(double clip) {
  constexpr int kSteps = 4000;
  const Floats gradient = GaussianGradient(300);
  const TernGradCodec codec({.clip = clip});
  std::vector<double> sum(gradient.size());
  for (int step = 0; step < kSteps; ++step) {
    EncodeContext context = kContext;
    context.step = static_cast<uint64_t>(step);
    const Floats decoded =
        Decode(codec, Encode(codec, gradient, context), std::ssize(gradient), 1, context);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += decoded[i];
  }
  const double size = clip > 0 ? ClippedAt(gradient, clip) : Largest(gradient);
  const double bound = 5 * size / 2 / std::sqrt(kSteps);
  double most_likely = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    const double expected = std::min(std::max(double{gradient[i]}, -size), size);
    EXPECT_NEAR(sum[i] / kSteps, expected, bound) << i;
    const double likely = std::nearbyint(expected / size) * size;
    most_likely = std::max(most_likely, std::abs(likely - expected));
  }
  EXPECT_GT(most_likely, bound);
}

TEST(TernGradCodec, IsUnbiased) { ExpectUnbiased(0); }
TEST(TernGradCodec, IsUnbiasedExceptForTheClipping) { ExpectUnbiased(1.5); }

TEST(TwoBitCodec, AdaptiveIsTheMeanOrNothing) {
  for (const double factor : {0.5, 1.0, 2.0}) {
    const Floats gradient = GaussianGradient(2501);
    const double threshold = factor * MeanOf(gradient, [](double x) { return std::abs(x); });
    const Floats decoded = RoundTrip(TwoBitCodec({.factor = factor}), gradient);
    for (size_t i = 0; i < gradient.size(); ++i) {
      if (std::abs(std::abs(gradient[i]) - threshold) < 1e-6) continue;
      const double expected =
          std::abs(gradient[i]) > threshold ? std::copysign(threshold, gradient[i]) : 0;
      ASSERT_NEAR(decoded[i], expected, 1e-6) << i;
    }
  }
}

TEST(TwoBitCodec, FixedIsTheThresholdOrNothing) {
  const TwoBitCodec codec({.threshold = 0.5});
  const Floats gradient = {0.5F, -0.5F, 0.4999F, -0.4999F, 7, -7, 0, -0.0F, 0.51F};
  const Floats expected = {0.5F, -0.5F, 0, 0, 0.5F, -0.5F, 0, 0, 0.5F};
  EXPECT_EQ(RoundTrip(codec, gradient), expected);
}

// A step of four batches has sums four times as large and sends them as a step of one batch does.
TEST(TwoBitCodec, AFixedThresholdGrowsWithTheBatch) {
  const TwoBitCodec codec({.threshold = 0.5});
  EncodeContext four = kContext;
  four.batches = 4;
  const Floats gradient = {2, -2, 1.9999F, -1.9999F, 28, -28, 0, -0.0F, 2.04F};
  const Floats expected = {2, -2, 0, 0, 2, -2, 0, 0, 2};
  const Payload payload = Encode(codec, gradient, four);
  EXPECT_EQ(Decode(codec, payload, std::ssize(gradient), 1, four), expected);
  EXPECT_EQ(DecodeStatus(codec, payload, std::ssize(gradient)).code(), StatusCode::kDataLoss)
      << "of another step";
}

TEST(TwoBitCodec, PayloadIsAsDrawnInTheHeader) {
  const TwoBitCodec codec({.threshold = 2});
  const Payload payload = Encode(codec, {2, -3, 0, 0, 0, 0, 0, 9, -9, 1});
  ASSERT_EQ(payload.size(), 4 + 2 + 2U);
  EXPECT_EQ(FloatAt(payload, 0), 2);
  EXPECT_EQ(ByteAt(payload, 4), 0x81);  // plus: elements 0 and 7
  EXPECT_EQ(ByteAt(payload, 5), 0x00);
  EXPECT_EQ(ByteAt(payload, 6), 0x02);  // minus: elements 1 and 8
  EXPECT_EQ(ByteAt(payload, 7), 0x01);
}

TEST(TwoBitCodec, AGradientOfZerosIsZero) {
  EXPECT_EQ(RoundTrip(TwoBitCodec({.factor = 1}), Floats(100)), Floats(100));
  EXPECT_EQ(RoundTrip(TernGradCodec({}), Floats(100)), Floats(100));
}

TEST(TernaryPayload, RefusesWhatEncodeCannotHaveWritten) {
  const TwoBitCodec adaptive({.factor = 1});
  const TwoBitCodec fixed({.threshold = 2});
  const TernGradCodec terngrad({});
  for (const Codec* codec : std::initializer_list<const Codec*>{&adaptive, &fixed, &terngrad}) {
    const Payload valid = Encode(*codec, GaussianGradient(101));
    ASSERT_TRUE(DecodeStatus(*codec, valid, 101).ok());
    Payload payload = valid;
    payload[6] = payload[6 + 13] = std::byte{0x10};
    EXPECT_NE(DecodeStatus(*codec, payload, 101).message().find("both plus and minus"),
              std::string::npos);
    payload = valid;
    payload.back() |= std::byte{0x20};
    EXPECT_NE(DecodeStatus(*codec, payload, 101).message().find("after the last element"),
              std::string::npos);
    for (const float size : {-1.0F, INFINITY, 1e-35F, -std::nanf("")}) {
      payload = valid;
      SetFloat(size, 0, &payload);
      EXPECT_EQ(DecodeStatus(*codec, payload, 101).code(), StatusCode::kDataLoss) << size;
    }
  }
  Payload payload = Encode(fixed, GaussianGradient(101));
  SetFloat(3, 0, &payload);
  EXPECT_EQ(DecodeStatus(fixed, payload, 101).message(),
            "payload of '2 bits, threshold 2': another threshold");
}

}  // namespace
}  // namespace ringtail
