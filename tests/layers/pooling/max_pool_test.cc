#include "layers/pooling/max_pool.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "layers/pooling/pool_window.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

const FieldCheck kFields(nullptr, "");

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PoolConfig Config(const std::string& text) {
  PoolConfig config;
  RT_CHECK(google::protobuf::TextFormat::ParseFromString(text, &config), text);
  return config;
}

// Max pooling as its definition says, one window after the other,
// with the gradient of every winner.
struct Reference {
  std::vector<float> dst, diff_src;
};

Reference NaiveMaxPool(const BlobDesc& src_desc, const PoolWindow& pool,
                       const std::vector<float>& src, const std::vector<float>& diff_dst) {
  const Window& w = pool.window;
  Reference r{.dst = {}, .diff_src = std::vector<float>(src.size())};
  for (int64_t plane = 0; plane < src_desc.N * src_desc.C; ++plane) {
    for (int64_t oh = 0; oh < pool.dst.H; ++oh) {
      for (int64_t ow = 0; ow < pool.dst.W; ++ow) {
        int64_t winner = -1;
        for (int64_t h = oh * w.SH - w.PT; h < oh * w.SH - w.PT + w.KH; ++h) {
          for (int64_t x = ow * w.SW - w.PL; x < ow * w.SW - w.PL + w.KW; ++x) {
            if (h < 0 || h >= src_desc.H || x < 0 || x >= src_desc.W) continue;
            const int64_t i = (plane * src_desc.H + h) * src_desc.W + x;
            if (winner < 0 || src[i] > src[winner]) winner = i;
          }
        }
        RT_CHECK(winner >= 0, "a window without an element");
        r.diff_src[winner] += diff_dst[r.dst.size()];
        r.dst.push_back(src[winner]);
      }
    }
  }
  return r;
}

struct Case {
  BlobDesc src;
  const char* config;
};
class MaxPoolTest : public testing::TestWithParam<Case> {};

TEST_P(MaxPoolTest, EqualsTheDefinition) {
  const auto [desc, text] = GetParam();
  const PoolConfig config = Config(text);
  auto pool = ReadPoolWindow(config, desc, kFields);
  ASSERT_TRUE(pool.ok()) << pool.status().ToString();
  std::vector<float> src = RandomPlain(desc, 1, -4, 4);
  for (float& v : src) v = std::round(v);  // small whole numbers: many equal maxima
  const std::vector<float> diff_dst = [&] {
    std::vector<float> diff = RandomPlain(pool->dst, 2, -8, 8);
    for (float& v : diff) v = std::round(v);  // sums are exact in any order
    return diff;
  }();
  const Reference expected = NaiveMaxPool(desc, *pool, src, diff_dst);

  MaxPoolLayer layer(config);
  LayerRunner runner(&layer, {desc});
  ASSERT_TRUE(runner.status().ok()) << runner.status().ToString();
  EXPECT_EQ(runner.Forward({src}), expected.dst);
  EXPECT_EQ(runner.Backward(diff_dst)[0], expected.diff_src);
  runner.step().training = false;  // the same function
  EXPECT_EQ(runner.Forward({src}), expected.dst);
  EXPECT_EQ(runner.Backward(diff_dst)[0], expected.diff_src);
  EXPECT_EQ(runner.problems(), "");

  MaxPoolLayer evaluation(config);
  LayerRunner evaluation_runner(&evaluation, {desc}, {.training = false});
  EXPECT_EQ(evaluation_runner.plan().state_bytes, 0U);
  EXPECT_EQ(evaluation_runner.Forward({src}), expected.dst);
}

INSTANTIATE_TEST_SUITE_P(
    Windows, MaxPoolTest,
    testing::Values(
        Case{{2, 16, 8, 8, 16}, "kernel: 2"}, Case{{2, 17, 9, 7, 16}, "kernel: 2"},
        Case{{1, 9, 9, 7, 8}, "kernel: 2 rounding: CEIL"},
        Case{{3, 5, 11, 13, 1}, "kernel: 3 stride: 2 padding: 1"},
        Case{{2, 16, 56, 55, 16}, "kernel: 3 stride: 2 padding: 1"},
        Case{{2, 8, 13, 14, 8}, "kernel: 3 stride: 2 rounding: CEIL"},
        Case{{1, 3, 6, 6, 8}, "kernel: 3 stride: 1 padding: 1"},
        Case{{1, 3, 9, 10, 16}, "kernel: [2, 3] stride: [3, 1]"},  // rows between the windows
        Case{{1, 4, 7, 8, 1}, "kernel: [4, 5] stride: [2, 3] padding: [2, 0, 1, 2]"},
        Case{{1, 4, 7, 8, 8}, "kernel: [4, 5] stride: [2, 3] padding: [2, 0, 1, 2] rounding: CEIL"},
        Case{{2, 3, 20, 20, 16}, "kernel: 16 stride: 2"},  // 256 taps: the last that fit a byte
        Case{{2, 3, 20, 20, 16}, "kernel: 17 stride: 1"},  // 289: the wide form
        Case{{1, 2, 20, 20, 1}, "kernel: 20"}, Case{{1, 16, 1, 1, 16}, "kernel: 1"}));

TEST(MaxPoolTest, FirstOfEqualMaximaWins) {
  const PoolConfig config = Config("kernel: 2");
  MaxPoolLayer layer(config);
  LayerRunner runner(&layer, {{1, 1, 2, 4, 8}});
  EXPECT_THAT(runner.Forward({{5, 5, 1, 2, 5, 5, 2, 2}}), ElementsAre(5, 2));
  EXPECT_THAT(runner.Backward({3, 4})[0], ElementsAre(3, 0, 0, 4, 0, 0, 0, 0));
}

TEST(MaxPoolTest, NanIsTheMaximumOfItsWindowAndGetsTheGradient) {
  constexpr float kInf = INFINITY;
  for (const int64_t block : {1, 8, 16}) {
    const PoolConfig config = Config("kernel: 2");
    MaxPoolLayer layer(config);
    LayerRunner runner(&layer, {{1, 1, 2, 6, block}});
    const std::vector<float> dst =
        runner.Forward({{1, NAN, 3, 3, -kInf, -kInf, kInf, 2, 3, 3, -kInf, -kInf}});
    EXPECT_TRUE(std::isnan(dst[0]));
    EXPECT_EQ(dst[1], 3);
    EXPECT_EQ(dst[2], -kInf);
    EXPECT_THAT(runner.Backward({1, 2, 3})[0], ElementsAre(0, 1, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0));
  }
}

TEST(PoolWindowTest, RoundingIsPyTorchs) {
  struct {
    int64_t size;
    const char* config;
    int64_t expected;
  } const cases[] = {
      {7, "kernel: 2", 3},
      {7, "kernel: 2 rounding: CEIL", 4},
      {13, "kernel: 3 stride: 2", 6},
      {14, "kernel: 3 stride: 2", 6},
      {14, "kernel: 3 stride: 2 rounding: CEIL", 7},
      {112, "kernel: 3 stride: 2 padding: 1", 56},
      {6, "kernel: 1 stride: 3 rounding: CEIL", 2},  // a third would start outside
      {5, "kernel: 2 stride: 2 padding: 1 rounding: CEIL",
       3},                                           // a fourth would start in the padding
      {1, "kernel: 2 stride: 2 rounding: CEIL", 1},  // larger than the image
  };
  for (const auto& c : cases) {
    const auto pool = ReadPoolWindow(Config(c.config), {1, 1, c.size, c.size, 1}, kFields);
    ASSERT_TRUE(pool.ok()) << c.config << ": " << pool.status().ToString();
    EXPECT_EQ(pool->dst.H, c.expected) << c.config << " of " << c.size;
    EXPECT_EQ(pool->dst.W, c.expected) << c.config << " of " << c.size;
  }
}

TEST(PoolWindowTest, RefusesWhatDoesNotFit) {
  struct {
    const char* config;
    const char* message;
  } const cases[] = {
      {"", "kernel is missing"},
      {"kernel: 0", "kernel is 0"},
      {"kernel: 2 stride: 0", "stride is 0"},
      {"kernel: 3 padding: 2", "more than half the kernel of 3"},
      {"kernel: [4, 2] padding: [0, 2, 0, 0]", "at the left"},
      {"kernel: 9", "does not fit into the input, 1x1x5x5"},
      {"kernel: [1, 2, 3]", "kernel has 3 values"},
  };
  for (const auto& c : cases) {
    const auto pool = ReadPoolWindow(Config(c.config), {1, 1, 5, 5, 1}, kFields);
    ASSERT_FALSE(pool.ok()) << c.config;
    EXPECT_EQ(pool.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(pool.status().message(), HasSubstr(c.message)) << c.config;
  }
}

}  // namespace
}  // namespace ringtail
