#include "dist/compression/codecs/important_filters_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/dist/compression/sparse_gradients.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
// The defaults of the config.
constexpr ImportantFiltersOptions kDefaults = {
    .max_rate = 0.5, .min_rate = 0.05, .power = 0.5, .theta = 10'000};

// The same rate for layers of any size.
ImportantFiltersOptions Uniform(double rate) {
  return {.max_rate = rate, .min_rate = rate, .power = 0, .theta = 1};
}

// Rows of very different sizes, in no order.
std::vector<float> FilterGradient(const GradientShape& shape, uint64_t seed) {
  auto gradient = NormalGradient(shape.elements(), seed);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    gradient[i] *= 1 + static_cast<float>(i / shape.columns * 7919 % 101);
  }
  return gradient;
}

std::vector<int64_t> MostImportant(const GradientShape& shape, const std::vector<float>& gradient,
                                   int64_t count) {
  std::vector<double> importance(shape.rows);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    importance[i / shape.columns] +=
        std::fabs(double{gradient[i]}) / static_cast<double>(shape.columns);
  }
  std::vector<int64_t> rows(shape.rows);
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](int64_t a, int64_t b) { return importance[a] > importance[b]; });
  rows.resize(count);
  return rows;
}

TEST(ImportantFilters, SendsTheMostImportantRowsAndOnlyThose) {
  for (const auto& [rows, columns] :
       {std::pair(64, 27), {64, 576}, {100, 1}, {33, 1000}, {1, 500}}) {
    const GradientShape shape = FilterShape(rows, columns);
    const ImportantFiltersCodec codec(kDefaults);
    const auto gradient = FilterGradient(shape, 1);
    const double rate =
        std::clamp(0.5 * std::sqrt(10'000.0 / static_cast<double>(rows * columns)), 0.05, 1.0);
    const auto count = static_cast<int64_t>(std::ceil(rate * rows - 1e-4));
    ASSERT_EQ(codec.RowsOf({.shape = shape}), count);
    std::vector<float> expected(shape.elements());
    for (const int64_t row : MostImportant(shape, gradient, count)) {
      std::copy_n(&gradient[row * columns], columns, &expected[row * columns]);
    }
    const auto payload = Encoded(codec, shape, {}, gradient);
    EXPECT_EQ(payload.size(), (rows + 31) / 32 * 4 + count * columns * 4);
    EXPECT_EQ(Decoded(codec, shape, {}, payload), expected) << rows << " x " << columns;
  }
}

TEST(ImportantFilters, WritesABitmapAndThenRows) {
  const ImportantFiltersCodec codec(Uniform(0.2));
  const GradientShape shape = FilterShape(10, 2);  // 2 of 10
  std::vector<float> gradient(20, 0.1f);
  gradient[18] = -5;  // row 9
  gradient[7] = 3;    // row 3
  const auto payload = Encoded(codec, shape, {}, gradient);
  ASSERT_EQ(payload.size(), 4 + 4 * 4);
  uint8_t bitmap[4];
  float rows[4];
  std::memcpy(bitmap, &payload[0], 4);
  std::memcpy(rows, &payload[4], 16);
  EXPECT_THAT(bitmap, testing::ElementsAre(1 << 3, 1 << 1, 0, 0));
  EXPECT_THAT(rows, testing::ElementsAre(0.1f, 3, -5, 0.1f));
}

TEST(ImportantFilters, SendsTheFirstOfEqualRows) {
  const ImportantFiltersCodec codec(Uniform(0.5));
  const GradientShape shape = FilterShape(6, 2);
  const std::vector<float> gradient(12, 1);
  EXPECT_EQ(Decoded(codec, shape, {}, Encoded(codec, shape, {}, gradient)),
            (std::vector<float>{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
}

TEST(ImportantFilters, LargerLayersHaveSmallerRates) {
  const ImportantFiltersCodec codec(kDefaults);
  EXPECT_DOUBLE_EQ(codec.RateOf({.shape = FilterShape(10, 10)}), 1);
  EXPECT_DOUBLE_EQ(codec.RateOf({.shape = FilterShape(25, 100)}), 1);
  EXPECT_DOUBLE_EQ(codec.RateOf({.shape = FilterShape(100, 100)}), 0.5);
  EXPECT_DOUBLE_EQ(codec.RateOf({.shape = FilterShape(200, 200)}), 0.25);
  EXPECT_DOUBLE_EQ(codec.RateOf({.shape = FilterShape(1000, 1000)}), 0.05);
  EXPECT_DOUBLE_EQ(codec.RateOf({.shape = FilterShape(2000, 2000)}), 0.05);
  EXPECT_NEAR(codec.RateOf({.shape = FilterShape(300, 300)}), 0.5 / 3, 1e-6);
  EXPECT_EQ(codec.RowsOf({.shape = FilterShape(2000, 2000)}), 100);

  ImportantFiltersOptions falling = kDefaults;
  falling.power = 1;
  const ImportantFiltersCodec linear(falling);
  EXPECT_DOUBLE_EQ(linear.RateOf({.shape = FilterShape(200, 200)}), 0.125);
  const ImportantFiltersCodec uniform(Uniform(0.125));
  EXPECT_DOUBLE_EQ(uniform.RateOf({.shape = FilterShape(10, 10)}), 0.125);
  EXPECT_DOUBLE_EQ(uniform.RateOf({.shape = FilterShape(2000, 2000)}), 0.125);
  EXPECT_EQ(codec.Describe(), "filters of largest mean |g|, 50% to 5%, (n / 10000)^-0.5");
}

TEST(ImportantFilters, WarmUpStartsWithAllRows) {
  ImportantFiltersOptions options = kDefaults;
  options.warmup_epochs = 4;
  const ImportantFiltersCodec codec(options);
  const GradientShape shape = FilterShape(200, 200);
  const auto rate_at = [&](double epoch) { return codec.RateOf({.shape = shape, .epoch = epoch}); };
  EXPECT_DOUBLE_EQ(rate_at(0), 1);
  EXPECT_DOUBLE_EQ(rate_at(1), 1 - 0.75 / 4);
  EXPECT_DOUBLE_EQ(rate_at(3.5), 1 - 0.75 * 3.5 / 4);
  EXPECT_DOUBLE_EQ(rate_at(4), 0.25);
  EXPECT_DOUBLE_EQ(rate_at(40), 0.25);
  const auto gradient = FilterGradient(shape, 2);
  EXPECT_EQ(Decoded(codec, shape, {}, Encoded(codec, shape, {}, gradient)), gradient);
}

TEST(ImportantFilters, SendsARowWithNaNFirst) {
  const ImportantFiltersCodec codec(Uniform(0.3));
  std::vector<float> gradient{1, 1, 9, 9, NAN, 0};
  const auto decoded =
      Decoded(codec, FilterShape(3, 2), {}, Encoded(codec, FilterShape(3, 2), {}, gradient));
  EXPECT_TRUE(std::isnan(decoded[4]));
  EXPECT_EQ(decoded[2], 0);
}

TEST(ImportantFilters, AddsWithAScale) {
  const ImportantFiltersCodec codec(Uniform(0.5));
  const auto payload = Encoded(codec, FilterShape(2, 2), {}, std::vector<float>{1, 1, 4, -8});
  std::vector<float> sum{1, 1, 1, 1};
  ASSERT_TRUE(codec.DecodeAdd({.shape = FilterShape(2, 2)}, payload, -0.5f, sum).ok());
  EXPECT_EQ(sum, (std::vector<float>{1, 1, -1, 5}));
}

TEST(ImportantFilters, AKeptResidualArrivesAndADroppedOneDoesNot) {
  const GradientShape shape = FilterShape(50, 40);
  const auto gradient = NormalGradient(shape.elements(), 2);
  const ImportantFiltersCodec codec(Uniform(0.1));
  const Feedback kept = SendRepeatedly(codec, shape, gradient, 400, true);
  EXPECT_LT(kept.unaccounted, 1e-5);
  EXPECT_LT(kept.error, 0.03);
  EXPECT_GT(SendRepeatedly(codec, shape, gradient, 400, false).error, 0.6);
}

TEST(ImportantFilters, RefusesRowsThatAreTooManyOrDoNotExist) {
  const ImportantFiltersCodec codec(Uniform(0.2));
  const GradientShape shape = FilterShape(10, 2);
  const auto valid = Encoded(codec, shape, {}, std::vector<float>(20, 1));  // rows 0 and 1
  const auto try_bitmap = [&](int first, int second, int third) {
    auto payload = valid;
    payload[0] = static_cast<std::byte>(first);
    payload[1] = static_cast<std::byte>(second);
    payload[2] = static_cast<std::byte>(third);
    std::vector<float> sum(20);
    return codec.DecodeAdd({.shape = shape}, payload, 1, sum);
  };
  EXPECT_TRUE(try_bitmap(0, 3, 0).ok());
  EXPECT_THAT(try_bitmap(7, 0, 0).message(), HasSubstr("holds 3 of them, not 2"));
  EXPECT_THAT(try_bitmap(1, 0, 0).message(), HasSubstr("holds 1 of them, not 2"));
  EXPECT_THAT(try_bitmap(1, 4, 0).message(), HasSubstr("filter 10 of 10"));
  EXPECT_THAT(try_bitmap(1, 0, 128).message(), HasSubstr("filter 23 of 10"));
  EXPECT_EQ(try_bitmap(1, 4, 0).code(), StatusCode::kDataLoss);
}

TEST(ImportantFilters, HostilePayloads) {
  const int refused =
      TryHostilePayloads(ImportantFiltersCodec(Uniform(0.2)), FilterShape(37, 5), {});
  EXPECT_GT(refused, kHostilePayloads / 2);
  EXPECT_LT(refused, kHostilePayloads);
}

}  // namespace
}  // namespace ringtail
