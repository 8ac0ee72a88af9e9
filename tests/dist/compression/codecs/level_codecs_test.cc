// Linear and QSGD, whose elements are whole numbers of steps.
#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "dist/compression/codecs/linear_codec.h"
#include "dist/compression/codecs/payload.h"
#include "dist/compression/codecs/qsgd_codec.h"
#include "tests/dist/compression/codec_runner.h"

namespace ringtail {
namespace {

class LinearTest : public testing::TestWithParam<int> {
 protected:
  // Of element i behind `scale_bytes` of scales, as the header draws them.
  int CodeAt(const Payload& payload, size_t scale_bytes, size_t i) const {
    if (bits_ == 8) return static_cast<int8_t>(ByteAt(payload, scale_bytes + i));
    const int byte = ByteAt(payload, scale_bytes + i / 2);
    const int nibble = i % 2 == 0 ? byte & 15 : byte >> 4;
    return nibble < 8 ? nibble : nibble - 16;
  }

  const int bits_ = GetParam();
  const size_t block_ = bits_ == 8 ? 1024 : 128;
  const int most_ = bits_ == 8 ? 127 : 7;
  LinearCodec codec_{LinearOptions{.bits = bits_}};
};

TEST_P(LinearTest, IsTheNearestStep) {
  const Floats gradient = MixedGradient(3000);
  const Payload payload = Encode(codec_, gradient);
  const size_t scale_bytes = (3000 + block_ - 1) / block_ * 4;
  ASSERT_EQ(payload.size(), scale_bytes + 3000U * static_cast<size_t>(bits_) / 8);
  const Floats decoded = Decode(codec_, payload, 3000);
  for (size_t begin = 0; begin < gradient.size(); begin += block_) {
    const size_t end = std::min(begin + block_, gradient.size());
    double largest = 0;
    for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(double{gradient[i]}));
    const double step = FloatAt(payload, begin / block_ * 4);
    ASSERT_NEAR(step, largest / most_, 1e-7 * step);
    for (size_t i = begin; i < end; ++i) {
      const int code = CodeAt(payload, scale_bytes, i);
      ASSERT_NEAR(code, gradient[i] / step, 0.5 + 1e-4) << i;
      ASSERT_NEAR(decoded[i], code * step, 1e-6 * std::abs(code * step)) << i;
    }
  }
}

TEST_P(LinearTest, TiesGoToEven) {
  const auto most = static_cast<float>(most_);
  const Floats gradient = {most, 0.5F, 1.5F, -2.5F, 3.5F, -most, 0};
  const Floats expected = {most, 0, 2, -2, 4, -most, 0};
  EXPECT_EQ(RoundTrip(codec_, gradient), expected);
}

TEST_P(LinearTest, RefusesWhatEncodeCannotHaveWritten) {
  const Payload valid = Encode(codec_, GaussianGradient(1101));
  for (const float scale : {-1.0F, INFINITY, -INFINITY, 1e-35F, -std::nanf(""), -0.0F}) {
    Payload payload = valid;
    SetFloat(scale, 4, &payload);
    EXPECT_EQ(DecodeStatus(codec_, payload, 1101).code(), StatusCode::kDataLoss) << scale;
  }
  Payload payload = valid;
  payload.back() = std::byte{static_cast<uint8_t>(bits_ == 8 ? 0x80 : 0x08)};
  EXPECT_EQ(DecodeStatus(codec_, payload, 1101).message(),
            bits_ == 8 ? "payload of '8 bits, linear': code -128"
                       : "payload of '4 bits, linear': code -8");
  payload.pop_back();
  EXPECT_EQ(DecodeStatus(codec_, payload, 1101).message(),
            bits_ == 8 ? "payload of '8 bits, linear': 1108 bytes instead of 1109"
                       : "payload of '4 bits, linear': 586 bytes instead of 587");
}

INSTANTIATE_TEST_SUITE_P(Bits, LinearTest, testing::Values(8, 4),
                         [](const auto& info) { return std::to_string(info.param); });

TEST(LinearCodec, NothingFollowsTheLastOfAnOddNumberOfNibbles) {
  const LinearCodec codec(LinearOptions{.bits = 4});
  Payload payload = Encode(codec, Floats{7, -3, 2});
  EXPECT_EQ(ByteAt(payload, 4), 0xd7);
  EXPECT_EQ(ByteAt(payload, 5), 0x02);
  payload.back() = std::byte{0x12};
  EXPECT_EQ(DecodeStatus(codec, payload, 3).message(),
            "payload of '4 bits, linear': a code after the last element");
}

class QsgdTest : public testing::TestWithParam<int> {
 protected:
  QsgdCodec codec_{QsgdOptions{.levels = GetParam()}};
  const int levels_ = GetParam();
  const bool eight_bits_ = levels_ > 7;
};

TEST_P(QsgdTest, DecodesToTheLevelThatIsDrawn) {
  const Floats gradient = GaussianGradient(1401);
  const Floats decoded = RoundTrip(codec_, gradient);
  Rng rng(DrawKey(kContext));
  int undecided = 0;
  for (size_t begin = 0; begin < gradient.size(); begin += 512) {
    const size_t end = std::min(begin + 512, gradient.size());
    double squares = 0;
    for (size_t i = begin; i < end; ++i) squares += double{gradient[i]} * double{gradient[i]};
    const double norm = std::sqrt(squares);
    for (size_t i = begin; i < end; ++i) {
      const double draw = rng.Uniform(), y = std::abs(double{gradient[i]}) / norm * levels_;
      const double level = std::floor(y), up = y - level;
      if (std::abs(draw - up) < 1e-5) {  // floats may decide otherwise
        ++undecided;
        continue;
      }
      const double size = (level + (draw < up ? 1 : 0)) / levels_ * norm;
      ASSERT_NEAR(decoded[i], gradient[i] < 0 ? -size : size, 1e-6 * norm) << i;
    }
  }
  EXPECT_LT(undecided, 3);
}

// The mean of 4000 encodings is within 5 standard deviations of the gradient; one is at most half
// of the distance of two levels, over the square root of 4000. The mean of levels that are always
// rounded down is farther away.
TEST_P(QsgdTest, IsUnbiased) {
  constexpr int kSteps = 4000;
  const Floats gradient = GaussianGradient(300);
  std::vector<double> sum(gradient.size());
  for (int step = 0; step < kSteps; ++step) {
    EncodeContext context = kContext;
    context.step = static_cast<uint64_t>(step);
    const Floats decoded =
        Decode(codec_, Encode(codec_, gradient, context), std::ssize(gradient), 1, context);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += decoded[i];
  }
  const double distance = Length(gradient) / levels_;
  const double bound = 5 * distance / 2 / std::sqrt(kSteps);
  double most_down = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    EXPECT_NEAR(sum[i] / kSteps, gradient[i], bound) << i;
    const double down = std::trunc(gradient[i] / distance) * distance;
    most_down = std::max(most_down, std::abs(down - gradient[i]));
  }
  EXPECT_GT(most_down, bound);
  EXPECT_TRUE(codec_.unbiased());
}

TEST_P(QsgdTest, EveryContextDrawsDifferently) {
  const Floats gradient = GaussianGradient(600);
  EncodeContext contexts[] = {kContext, kContext, kContext, kContext, kContext};
  ++contexts[0].seed;
  ++contexts[1].step;
  ++contexts[2].parameter;
  ++contexts[3].rank;
  ++contexts[4].part;
  const Payload here = Encode(codec_, gradient);
  EXPECT_EQ(Encode(codec_, gradient), here);
  for (const EncodeContext& other : contexts) EXPECT_NE(Encode(codec_, gradient, other), here);
}

TEST_P(QsgdTest, RefusesWhatEncodeCannotHaveWritten) {
  const Payload valid = Encode(codec_, GaussianGradient(601));
  Payload payload = valid;
  SetFloat(-1, 4, &payload);
  EXPECT_EQ(DecodeStatus(codec_, payload, 601).code(), StatusCode::kDataLoss);
  payload = valid;
  payload[20] = std::byte{static_cast<uint8_t>(eight_bits_ ? 0x80 : 0x08)};  // -128, -8
  EXPECT_EQ(DecodeStatus(codec_, payload, 601).code(), StatusCode::kDataLoss);
  if (!eight_bits_) {
    payload = valid;
    payload.back() |= std::byte{0x10};
    EXPECT_EQ(DecodeStatus(codec_, payload, 601).code(), StatusCode::kDataLoss);
  }
  if (levels_ != 7 && levels_ != 127) {  // the highest codes of either size
    payload = valid;
    payload[20] = std::byte{static_cast<uint8_t>(levels_ + 1)};
    EXPECT_EQ(DecodeStatus(codec_, payload, 601).code(), StatusCode::kDataLoss);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, QsgdTest, testing::Values(127, 9, 7, 3, 1),
                         [](const auto& info) { return std::to_string(info.param); });

TEST(QsgdCodec, PayloadIsAsDrawnInTheHeader) {
  // Elements exactly at levels: no draw matters. Norm 14, 7 levels.
  const Floats gradient = {12, -6, 4, 0, 0};  // sqrt(144 + 36 + 16) = 14
  const Payload payload = Encode(QsgdCodec({.levels = 7}), gradient);
  ASSERT_EQ(payload.size(), 4 + 3U);
  EXPECT_EQ(FloatAt(payload, 0), 14);
  EXPECT_EQ(ByteAt(payload, 4), 0xd6);  // 6, -3
  EXPECT_EQ(ByteAt(payload, 5), 0x02);  // 2, 0
  EXPECT_EQ(ByteAt(payload, 6), 0x00);
}

}  // namespace
}  // namespace ringtail
