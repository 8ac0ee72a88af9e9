#include "dist/compression/codecs/dgc_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "dist/compression/codecs/magnitude.h"
#include "tests/dist/compression/sparse_gradients.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr int64_t kElements = 200'000;

const EncodeContext kWhole{.shape = VectorShape(kElements)};

// Number of entries of a payload.
int64_t CountIn(const DgcCodec& codec, const EncodeContext& context,
                std::span<const std::byte> payload) {
  int64_t count = 0;
  codec.ForEachSent(context, payload, [&](int64_t, float) { ++count; });
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
    const int64_t bytes = codec.PayloadBytes(context.WithShape(VectorShape(kElements)));
    EXPECT_GT(bytes, 4 * capacity);
    EXPECT_LT(bytes, (4 + 1.7) * static_cast<double>(capacity));
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const auto gradient = NormalGradient(kElements, seed);
      const auto payload = Encoded(codec, VectorShape(kElements), context, gradient);
      const int64_t count = CountIn(codec, context.WithShape(VectorShape(kElements)), payload);
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
    const int64_t count = CountIn(codec, kWhole, payload);
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
  const auto count_of = [&](float element) {
    const std::vector<float> gradient(kElements, element);
    return CountIn(codec, kWhole, Encoded(codec, kWhole.shape, {}, gradient));
  };
  EXPECT_EQ(count_of(2), kTarget);
  EXPECT_EQ(count_of(-INFINITY), kTarget);
  EXPECT_EQ(count_of(NAN), kTarget);
  EXPECT_EQ(count_of(0), 0);  // there is nothing to send

  std::vector<float> few(kElements);
  for (int64_t i = 0; i < kTarget / 2; ++i) few[100 * i] = static_cast<float>(i + 1);
  EXPECT_EQ(Decoded(codec, kWhole.shape, {}, Encoded(codec, kWhole.shape, {}, few)), few);
}

TEST(DgcCodec, SmallGradientsAreSelectedExactly) {
  for (const int64_t n : {1, 2, 3, 100, 9999}) {
    const DgcCodec codec({.densities = {0.05}});
    const auto gradient = NormalGradient(n, 3);
    const auto payload = Encoded(codec, VectorShape(n), {}, gradient);
    const auto k = static_cast<int64_t>(std::ceil(0.05 * static_cast<double>(n)));
    EXPECT_EQ(CountIn(codec, {.shape = VectorShape(n)}, payload), k);
    ExpectLargest(gradient, Decoded(codec, VectorShape(n), {}, payload), k);
  }
}

// Places 1 and 2 of 4, room for 3: no lower parts, upper parts at bits 1 + 0 and 2 + 1.
TEST(DgcCodec, UnusedRoomIsZero) {
  const DgcCodec codec({.densities = {0.5}, .values = ValueFormat::kBfloat16});
  const std::vector<float> gradient{1, -2, 3, 0.5f};  // k = 2
  const auto payload = Encoded(codec, VectorShape(4), {}, gradient);
  std::vector<int> bytes(payload.size());
  std::ranges::transform(payload, bytes.begin(),
                         [](std::byte b) { return std::to_integer<int>(b); });
  EXPECT_THAT(bytes, testing::ElementsAre(0x00, 0xc0, 0x40, 0x40, 0, 0, 0b1010));
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

TEST(DgcCodec, RefusesMoreEntriesThanItWrites) {
  const DgcCodec codec({.densities = {0.5}, .values = ValueFormat::kBfloat16});
  auto payload = Encoded(codec, VectorShape(4), {}, std::vector<float>{1, -2, 3, 0.5f});
  std::vector<float> sum(4);
  payload[6] = std::byte{0b1010101};  // places 0, 1, 2 and 3
  EXPECT_THAT(codec.DecodeAdd({.shape = VectorShape(4)}, payload, 1, sum).message(),
              HasSubstr("more than 3 entries"));
  payload[6] = std::byte{0b10};
  EXPECT_THAT(codec.DecodeAdd({.shape = VectorShape(4)}, payload, 1, sum).message(),
              HasSubstr("more values than places"));
}

TEST(DgcCodec, HostilePayloads) {
  for (const ValueFormat format : {ValueFormat::kFloat, ValueFormat::kLevels8}) {
    const DgcCodec codec({.densities = {0.1}, .values = format});
    const int refused = TryHostilePayloads(codec, FilterShape(10, 30), {});
    EXPECT_GT(refused, kHostilePayloads / 2);
    EXPECT_LT(refused, kHostilePayloads);
  }
}

}  // namespace
}  // namespace ringtail
