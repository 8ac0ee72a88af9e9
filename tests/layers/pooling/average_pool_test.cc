// The three average poolings: they share one kernel, and differ in their windows.
#include "layers/pooling/average_pools.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "layers/pooling/average_pools.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PoolConfig Config(const std::string& text) {
  PoolConfig config;
  RT_CHECK(google::protobuf::TextFormat::ParseFromString(text, &config), text);
  return config;
}

// share(oh, ow, h, w): what the element at (h, w) weighs in the average of window (oh, ow).
using Share = std::function<double(int64_t, int64_t, int64_t, int64_t)>;

// Compares forward and backward of `layer` with the sums that `share` defines.
void ExpectAverages(Layer* layer, const BlobDesc& desc, const Share& share) {
  LayerRunner runner(layer, {desc});
  ASSERT_TRUE(runner.status().ok()) << runner.status().ToString();
  const BlobDesc& dst_desc = runner.plan().dst;
  const std::vector<float> src = RandomPlain(desc, 1), diff_dst = RandomPlain(dst_desc, 2);
  std::vector<double> dst(diff_dst.size()), diff_src(src.size());
  for (int64_t plane = 0; plane < desc.N * desc.C; ++plane) {
    for (int64_t o = 0; o < dst_desc.plane(); ++o) {
      for (int64_t i = 0; i < desc.plane(); ++i) {
        const double s = share(o / dst_desc.W, o % dst_desc.W, i / desc.W, i % desc.W);
        dst[plane * dst_desc.plane() + o] += s * src[plane * desc.plane() + i];
        diff_src[plane * desc.plane() + i] += s * diff_dst[plane * dst_desc.plane() + o];
      }
    }
  }
  const std::vector<float> actual = runner.Forward({src});
  const std::vector<float> actual_diff = runner.Backward(diff_dst)[0];
  for (size_t i = 0; i < dst.size(); ++i) ASSERT_NEAR(actual[i], dst[i], 1e-5) << "dst " << i;
  for (size_t i = 0; i < diff_src.size(); ++i) {
    ASSERT_NEAR(actual_diff[i], diff_src[i], 1e-5) << "diff_src " << i;
  }
  EXPECT_EQ(runner.problems(), "");
}

bool Within(int64_t i, int64_t begin, int64_t size) { return i >= begin && i < begin + size; }

TEST(AveragePoolTest, DividesByTheWindow) {
  for (const int64_t block : {1, 8, 16}) {
    const PoolConfig config = Config("kernel: [2, 3] stride: [2, 1]");
    AveragePoolLayer layer(config);
    ExpectAverages(&layer, {2, 17, 7, 9, block}, [](int64_t oh, int64_t ow, int64_t h, int64_t w) {
      return Within(h, 2 * oh, 2) && Within(w, ow, 3) ? 1 / 6.0 : 0;
    });
  }
}

TEST(AveragePoolTest, CountsPaddingOnlyIfAsked) {
  for (const bool count_padding : {true, false}) {
    PoolConfig config = Config("kernel: 3 stride: 2 padding: 1");
    config.set_count_padding(count_padding);
    AveragePoolLayer layer(config);
    ExpectAverages(&layer, {2, 5, 7, 7, 8}, [&](int64_t oh, int64_t ow, int64_t h, int64_t w) {
      const auto elements = [&](int64_t o) { return count_padding || Within(o, 1, 2) ? 3 : 2; };
      return Within(h, 2 * oh - 1, 3) && Within(w, 2 * ow - 1, 3)
                 ? 1.0 / (elements(oh) * elements(ow))
                 : 0;
    });
  }
}

TEST(AveragePoolTest, CeilDoesNotCountWhatLiesBeyondThePadding) {
  // Windows of 2 at 0, 2 and 4 of five elements: the last has one element in the image.
  for (const bool count_padding : {true, false}) {
    PoolConfig config = Config("kernel: [1, 2] rounding: CEIL");
    config.set_count_padding(count_padding);
    AveragePoolLayer layer(config);
    LayerRunner runner(&layer, {{1, 1, 1, 5, 1}});
    EXPECT_THAT(runner.Forward({{1, 3, 5, 7, 9}}), ElementsAre(2, 6, 9));
  }
  // With one column of padding on the right it counts, and nothing more.
  const PoolConfig config =
      Config("kernel: [1, 4] stride: [1, 3] padding: [0, 0, 0, 1] rounding: CEIL");
  AveragePoolLayer layer(config);
  LayerRunner runner(&layer, {{1, 1, 1, 5, 1}});
  EXPECT_THAT(runner.Forward({{1, 2, 3, 6, 9}}), ElementsAre(3, 5));  // 12 / 4, 15 / 3
}

TEST(GlobalAveragePoolTest, TakesTheMeanOfEachPlane) {
  for (const int64_t block : {1, 8, 16}) {
    const GlobalAveragePoolConfig config;
    GlobalAveragePoolLayer layer(config);
    ExpectAverages(&layer, {3, 19, 7, 5, block},
                   [](int64_t, int64_t, int64_t, int64_t) { return 1 / 35.0; });
  }
}

TEST(GlobalAveragePoolTest, CallsWholeBlocksPlain) {
  const GlobalAveragePoolConfig config;
  GlobalAveragePoolLayer whole(config), partial(config);
  const LayerRunner whole_runner(&whole, {{2, 32, 4, 4, 16}});
  const LayerRunner partial_runner(&partial, {{2, 24, 4, 4, 16}});
  EXPECT_EQ(whole_runner.plan().dst, (BlobDesc{2, 32, 1, 1, 1}));
  EXPECT_EQ(partial_runner.plan().dst, (BlobDesc{2, 24, 1, 1, 16}));
}

TEST(AdaptiveAveragePoolTest, CoversTheImageWithOverlappingWindows) {
  const auto inside = [](int64_t o, int64_t i, int64_t size, int64_t outputs) {
    const int64_t begin = o * size / outputs;
    const int64_t end = ((o + 1) * size + outputs - 1) / outputs;
    return Within(i, begin, end - begin) ? 1.0 / static_cast<double>(end - begin) : 0;
  };
  for (const int64_t output : {1, 3, 6, 7, 9}) {  // 9: more windows than rows
    AdaptiveAveragePoolConfig config;
    config.set_output(static_cast<int32_t>(output));
    AdaptiveAveragePoolLayer layer(config);
    ExpectAverages(&layer, {2, 9, 7, 8, 8}, [&](int64_t oh, int64_t ow, int64_t h, int64_t w) {
      return inside(oh, h, 7, output) * inside(ow, w, 8, output);
    });
  }
}

TEST(AdaptiveAveragePoolTest, RefusesAnOutputOfZero) {
  const AdaptiveAveragePoolConfig config;
  AdaptiveAveragePoolLayer layer(config);
  const LayerRunner runner(&layer, {{1, 1, 4, 4, 1}});
  EXPECT_THAT(runner.status().message(), HasSubstr("output is 0"));
}

}  // namespace
}  // namespace ringtail
