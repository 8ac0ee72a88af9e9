#include "dist/compression/codecs/dgc_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "dist/compression/codecs/magnitude.h"
#include "tests/dist/compression/sparse_gradients.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr int64_t kElements = 200'000;

int32_t CountIn(std::span<const std::byte> payload) {
  int32_t count;
  std::memcpy(&count, payload.data(), 4);
  return count;
}

// `decoded` must have exactly the `count` elements whose magnitude reaches some threshold.
void ExpectLargest(const std::vector<float>& gradient, const std::vector<float>& decoded,
                   int64_t count) {
  float smallest_sent = std::numeric_limits<float>::infinity(), largest_kept = 0;
  int64_t sent = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    if (decoded[i] != 0) {
      EXPECT_EQ(decoded[i], gradient[i]);
      smallest_sent = std::min(smallest_sent, std::fabs(gradient[i]));
      ++sent;
    } else {
      largest_kept = std::max(largest_kept, std::fabs(gradient[i]));
    }
  }
  EXPECT_EQ(sent, count);
  EXPECT_GE(smallest_sent, largest_kept);
}

// The paper's warm-up.
const DgcOptions kWarmUp{.densities = {0.25, 0.063, 0.015, 0.004, 0.001}};

TEST(DgcCodec, SendsAboutTheTargetAndAlwaysTheSameBytes) {
  const DgcCodec codec(kWarmUp);
  for (const double epoch : {0.0, 0.99, 1.0, 2.5, 3.0, 4.0, 400.0}) {
    const double densities[] = {0.25, 0.063, 0.015, 0.004, 0.001};
    const double density = densities[std::min(static_cast<int>(epoch), 4)];
    const auto k = static_cast<int64_t>(std::ceil(density * kElements));
    const EncodeContext context{.epoch = epoch};
    const auto capacity = static_cast<int64_t>(std::ceil(1.3 * static_cast<double>(k)));
    EXPECT_EQ(codec.PayloadBytes(context.WithShape(VectorShape(kElements))), 4 + 8 * capacity);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const auto gradient = NormalGradient(kElements, seed);
      const auto payload = Encoded(codec, VectorShape(kElements), context, gradient);
      const int32_t count = CountIn(payload);
      EXPECT_GE(count, 0.8 * static_cast<double>(k));
      EXPECT_LE(count, capacity);
      ExpectLargest(gradient, Decoded(codec, VectorShape(kElements), context, payload), count);
    }
  }
}

// If the sample has larger or smaller elements than the rest, the first threshold is wrong. The
// exact selection would find exactly k; a threshold that is found step by step hardly ever does.
TEST(DgcCodec, AdaptsTheThresholdIfTheSampleIsWrong) {
  const DgcCodec codec({.densities = {0.001}});
  std::vector<float> places(kElements);
  std::iota(places.begin(), places.end(), 0.0f);
  const auto sampled = SampleMagnitudes(places, kElements / 100);
  for (const float factor : {0.5f, 0.8f, 1.3f, 3.0f}) {
    auto gradient = NormalGradient(kElements, 6);
    for (const uint32_t place : sampled) {
      gradient[static_cast<int64_t>(std::bit_cast<float>(place))] *= factor;
    }
    const auto payload = Encoded(codec, VectorShape(kElements), {}, gradient);
    const int32_t count = CountIn(payload);
    EXPECT_GE(count, 160);
    EXPECT_LE(count, 260);
    EXPECT_NE(count, 200) << factor;
    ExpectLargest(gradient, Decoded(codec, VectorShape(kElements), {}, payload), count);
  }
}

// Gradients without a threshold that about k elements reach.
TEST(DgcCodec, FallsBackToTheExactSelection) {
  const DgcCodec codec({.densities = {0.01}});
  constexpr int64_t kTarget = kElements / 100;
  std::vector<float> equal(kElements, 2);
  EXPECT_EQ(CountIn(Encoded(codec, VectorShape(kElements), {}, equal)), kTarget);

  std::vector<float> zero(kElements);
  EXPECT_EQ(CountIn(Encoded(codec, VectorShape(kElements), {}, zero)), kTarget);

  std::vector<float> few(kElements);
  for (int64_t i = 0; i < kTarget / 2; ++i) few[100 * i] = static_cast<float>(i + 1);
  const auto decoded =
      Decoded(codec, VectorShape(kElements), {}, Encoded(codec, VectorShape(kElements), {}, few));
  EXPECT_EQ(decoded, few);

  std::vector<float> infinite(kElements, -INFINITY);
  EXPECT_EQ(CountIn(Encoded(codec, VectorShape(kElements), {}, infinite)), kTarget);
  std::vector<float> undefined(kElements, NAN);
  EXPECT_EQ(CountIn(Encoded(codec, VectorShape(kElements), {}, undefined)), kTarget);
}

TEST(DgcCodec, SmallGradientsAreSelectedExactly) {
  for (const int64_t n : {1, 2, 3, 100, 9999}) {
    const DgcCodec codec({.densities = {0.05}});
    const auto gradient = NormalGradient(n, 3);
    const auto payload = Encoded(codec, VectorShape(n), {}, gradient);
    const auto k = static_cast<int64_t>(std::ceil(0.05 * static_cast<double>(n)));
    EXPECT_EQ(CountIn(payload), k);
    ExpectLargest(gradient, Decoded(codec, VectorShape(n), {}, payload), k);
  }
}

TEST(DgcCodec, UnusedEntriesAreZero) {
  const DgcCodec codec({.densities = {0.5}, .values = ValueFormat::kBfloat16});
  const std::vector<float> gradient{1, -2, 3, 0.5f};  // k = 2, room for 3
  const auto payload = Encoded(codec, VectorShape(4), {}, gradient);
  const std::byte expected[] = {std::byte{2},
                                {},
                                {},
                                {},
                                std::byte{1},
                                {},
                                {},
                                {},
                                std::byte{2},
                                {},
                                {},
                                {},
                                {},
                                {},
                                {},
                                {},
                                {},
                                std::byte{0xc0},
                                std::byte{0x40},
                                std::byte{0x40},
                                {},
                                {}};
  ASSERT_EQ(payload.size(), std::size(expected));
  EXPECT_EQ(std::memcmp(payload.data(), expected, sizeof(expected)), 0);
}

TEST(DgcCodec, TheSameNumbersGiveTheSameBytes) {
  const DgcCodec codec(kWarmUp);
  const auto gradient = NormalGradient(kElements, 9);
  const EncodeContext context{.step = 3, .epoch = 4};
  EncodeContext of_another_rank = context;
  of_another_rank.rank = 5;
  EXPECT_EQ(Encoded(codec, VectorShape(kElements), context, gradient),
            Encoded(codec, VectorShape(kElements), of_another_rank, gradient));
}

TEST(DgcCodec, RefusesACountThatItNeverWrites) {
  const DgcCodec codec({.densities = {0.1}});
  const GradientShape shape = VectorShape(1000);  // 80 to 130 entries
  const auto valid = Encoded(codec, shape, {}, NormalGradient(1000, 4));
  for (const int32_t count : {0, 79, 131, 1000, -1, INT32_MAX, INT32_MIN}) {
    auto payload = valid;
    std::memcpy(payload.data(), &count, 4);
    std::vector<float> sum(1000);
    const Status status = codec.DecodeAdd({.shape = shape}, payload, 1, sum);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("not 80 to 130"));
  }
}

TEST(DgcCodec, RefusesEntriesAfterTheLast) {
  const DgcCodec codec({.densities = {0.1}});
  const GradientShape shape = VectorShape(1000);
  const auto valid = Encoded(codec, shape, {}, NormalGradient(1000, 4));  // 100 of 130
  for (const size_t after :
       {4 + 4 * 100, 4 + 4 * 130 + 4 * 100, static_cast<int>(valid.size()) - 1}) {
    auto payload = valid;
    payload[after] = std::byte{1};
    std::vector<float> sum(1000);
    EXPECT_THAT(codec.DecodeAdd({.shape = shape}, payload, 1, sum).message(),
                HasSubstr("says that it has 100 entries, and has more"));
  }
}

TEST(DgcCodec, HostilePayloads) {
  const DgcCodec codec({.densities = {0.1}});
  const int refused = TryHostilePayloads(codec, FilterShape(10, 30), {});
  EXPECT_GT(refused, kHostilePayloads / 2);
  EXPECT_LT(refused, kHostilePayloads);
}

}  // namespace
}  // namespace ringtail
