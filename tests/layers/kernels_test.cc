// Every kernel, for every instruction set that this machine has, against the obvious loop.
#include "core/kernel_isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "layers/kernels/activation.h"
#include "layers/kernels/arithmetic.h"
#include "layers/kernels/average_pool.h"
#include "layers/kernels/batch_norm.h"
#include "layers/kernels/max_pool.h"
#include "layers/kernels/relayout.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using Floats = std::vector<float>;

// The best ISA of the machine; the first call finds it, before any test selects less.
const std::vector<KernelIsa>& MachineIsas() {
  static const std::vector<KernelIsa> isas = [] {
    std::vector<KernelIsa> all = {KernelIsa::kBaseline, KernelIsa::kAvx2, KernelIsa::kAvx512};
    all.resize(static_cast<size_t>(SelectedKernelIsa()) + 1);
    return all;
  }();
  return isas;
}

Floats Random(int64_t n, uint64_t seed, float low = -2, float high = 3) {
  return RandomPlain({1, n}, seed, low, high);
}

void ExpectNear(const Floats& actual, const Floats& expected, float tolerance, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i])))
        << what << " element " << i;
  }
}

class KernelsTest : public testing::TestWithParam<KernelIsa> {
 protected:
  KernelsTest() : before_(SelectedKernelIsa()) { SetKernelIsaForTest(GetParam()); }
  ~KernelsTest() override { SetKernelIsaForTest(before_); }

 private:
  KernelIsa before_;
};

constexpr int64_t kBlocks[] = {1, 8, 16};
constexpr int64_t kSizes[] = {1, 7, 16, 63, 1000};

TEST_P(KernelsTest, NameTellsTheIsa) {
  EXPECT_EQ(std::string(KernelImplementation()),
            std::string("ringtail:") + KernelIsaName(GetParam()));
}

TEST_P(KernelsTest, Activations) {
  for (const int64_t n : kSizes) {
    const Floats x = Random(n, 1, -4, 10), diff = Random(n, 2);
    const auto check = [&](const char* what, const std::function<void(float*)>& run,
                           const std::function<float(float x, float diff)>& naive) {
      Floats actual(n), expected(n);
      run(actual.data());
      for (int64_t i = 0; i < n; ++i) expected[i] = naive(x[i], diff[i]);
      ExpectNear(actual, expected, 1e-6F, what);
    };
    check(
        "Clamp", [&](float* out) { RT_KERNEL(Clamp<float>, x.data(), n, 0, 6, out); },
        [](float v, float) { return std::clamp(v, 0.0F, 6.0F); });
    check(
        "ClampGradient",
        [&](float* out) { RT_KERNEL(ClampGradient<float>, x.data(), diff.data(), n, 0, 6, out); },
        [](float v, float d) { return v > 0 && v < 6 ? d : 0; });
    check(
        "LeakyRelu", [&](float* out) { RT_KERNEL(LeakyRelu, x.data(), n, 0.1F, out); },
        [](float v, float) { return v > 0 ? v : 0.1F * v; });
    check(
        "LeakyReluGradient",
        [&](float* out) { RT_KERNEL(LeakyReluGradient, x.data(), diff.data(), n, 0.1F, out); },
        [](float v, float d) { return v > 0 ? d : 0.1F * d; });
    check(
        "SigmoidGradient",
        [&](float* out) { RT_KERNEL(SigmoidGradient, x.data(), diff.data(), n, out); },
        [](float v, float d) { return v * (1 - v) * d; });
    check(
        "TanhGradient", [&](float* out) { RT_KERNEL(TanhGradient, x.data(), diff.data(), n, out); },
        [](float v, float d) { return (1 - v * v) * d; });
  }
}

TEST_P(KernelsTest, Arithmetic) {
  for (const int64_t n : kSizes) {
    const Floats a = Random(n, 1), b = Random(n, 2), diff = Random(n, 3);
    Floats clamped(n), product(n), diff_a(n), diff_b(n);
    RT_KERNEL(AddClamped<float>, a.data(), b.data(), n, -1, 2, clamped.data());
    RT_KERNEL(Multiply, a.data(), b.data(), n, product.data());
    RT_KERNEL(MultiplyGradient, a.data(), b.data(), diff.data(), n, diff_a.data(), diff_b.data());
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(clamped[i], std::clamp(a[i] + b[i], -1.0F, 2.0F));
      ASSERT_EQ(product[i], a[i] * b[i]);
      ASSERT_EQ(diff_a[i], b[i] * diff[i]);
      ASSERT_EQ(diff_b[i], a[i] * diff[i]);
    }
  }
}

TEST_P(KernelsTest, Relayout) {
  for (const int64_t block : {8, 16}) {
    for (int64_t channels = 1; channels <= block; ++channels) {
      for (const int64_t plane : {1, 5, 64, 131}) {
        const Floats planes = Random(channels * plane, 1);
        Floats interleaved(plane * block, NAN), expected(plane * block), back(channels * plane);
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t p = 0; p < plane; ++p) expected[p * block + c] = planes[c * plane + p];
        }
        RT_KERNEL(InterleaveChannels<float>, planes.data(), plane, channels, block,
                  interleaved.data());
        ASSERT_EQ(interleaved, expected) << channels << " of " << block << " channels";
        RT_KERNEL(DeinterleaveChannels<float>, interleaved.data(), plane, channels, block,
                  back.data());
        ASSERT_EQ(back, planes) << channels << " of " << block << " channels";
      }
    }
  }
}

TEST_P(KernelsTest, BatchNorm) {
  constexpr float kLow = 0, kHigh = 6;
  for (const int64_t block : kBlocks) {
    for (const int64_t pixels : {1, 49, 300, 5000}) {
      const int64_t n = pixels * block;
      const Floats src = Random(n, 1), diff = Random(n, 2), mean = Random(block, 3);
      const Floats scale = Random(block, 4, 0.5, 3), bias = Random(block, 5, 0, 5);
      const Floats slope = Random(block, 6), offset = Random(block, 7);
      const ChannelAffine affine{mean.data(), scale.data(), bias.data(), kLow, kHigh};
      const auto count = static_cast<double>(pixels);
      std::vector<double> naive_mean(block), naive_m2(block), naive_g(block), naive_gx(block);
      Floats naive_dst(n), naive_diff_src(n);
      for (int64_t i = 0; i < n; ++i) naive_mean[i % block] += src[i] / count;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t c = i % block;
        const double x = src[i], y = (x - mean[c]) * scale[c] + bias[c];
        const double g = y > kLow && y < kHigh ? diff[i] : 0;
        naive_m2[c] += (x - naive_mean[c]) * (x - naive_mean[c]);
        naive_g[c] += g;
        naive_gx[c] += g * (x - mean[c]);
        naive_dst[i] = static_cast<float>(std::clamp<double>(y, kLow, kHigh));
        naive_diff_src[i] = static_cast<float>(scale[c] * g + slope[c] * (x - mean[c]) + offset[c]);
      }
      std::vector<double> actual_mean(block), actual_m2(block), actual_g(block), actual_gx(block);
      Floats dst(n), diff_src(n);
      RT_KERNEL(BatchNormMoments<float>, src.data(), pixels, block, actual_mean.data(),
                actual_m2.data());
      RT_KERNEL(BatchNormApply<float>, src.data(), pixels, block, affine, dst.data());
      RT_KERNEL(BatchNormGradientSums<float>, src.data(), diff.data(), pixels, block, affine,
                actual_g.data(), actual_gx.data());
      RT_KERNEL(BatchNormGradient<float>, src.data(), diff.data(), pixels, block, affine,
                slope.data(), offset.data(), diff_src.data());
      ExpectNear(dst, naive_dst, 1e-5F, "dst");
      ExpectNear(diff_src, naive_diff_src, 1e-5F, "diff_src");
      for (int64_t c = 0; c < block; ++c) {
        ASSERT_NEAR(actual_mean[c], naive_mean[c], 1e-7);
        ASSERT_NEAR(actual_m2[c], naive_m2[c], 1e-5 * (1 + naive_m2[c]));
        ASSERT_NEAR(actual_g[c], naive_g[c], 1e-6 * (1 + count));
        ASSERT_NEAR(actual_gx[c], naive_gx[c], 1e-6 * (1 + count));
      }
    }
  }
}

TEST_P(KernelsTest, MaxPool) {
  const MaxPoolGeometry g{
      .H = 7, .W = 9, .OH = 4, .OW = 5, .KH = 3, .KW = 3, .SH = 2, .SW = 2, .PT = 1, .PL = 1};
  for (const int64_t block : kBlocks) {
    const int64_t src_floats = g.H * g.W * block, dst_floats = g.OH * g.OW * block;
    const Floats src = Random(src_floats, 1), diff_dst = Random(dst_floats, 2);
    Floats naive_dst(dst_floats), naive_diff_src(src_floats);
    for (int64_t o = 0; o < dst_floats; ++o) {
      const int64_t c = o % block, oh = o / block / g.OW, ow = o / block % g.OW;
      int64_t winner = -1;
      for (int64_t h = std::max<int64_t>(0, 2 * oh - 1); h < std::min(g.H, 2 * oh + 2); ++h) {
        for (int64_t w = std::max<int64_t>(0, 2 * ow - 1); w < std::min(g.W, 2 * ow + 2); ++w) {
          const int64_t i = (h * g.W + w) * block + c;
          if (winner < 0 || src[i] > src[winner]) winner = i;
        }
      }
      naive_dst[o] = src[winner];
      naive_diff_src[winner] += diff_dst[o];
    }
    std::vector<uint8_t> winner(dst_floats);
    std::vector<int32_t> wide_winner(dst_floats);
    Floats dst(dst_floats), wide_dst(dst_floats), plain_dst(dst_floats), diff_src(src_floats, NAN);
    RT_KERNEL(MaxPoolForward<float>, src.data(), g, block, dst.data(), winner.data());
    RT_KERNEL(MaxPoolForward<float>, src.data(), g, block, plain_dst.data(), nullptr);
    RT_KERNEL(MaxPoolForwardWide<float>, src.data(), g, block, wide_dst.data(), wide_winner.data());
    EXPECT_EQ(dst, naive_dst);
    EXPECT_EQ(plain_dst, naive_dst);
    EXPECT_EQ(wide_dst, naive_dst);
    EXPECT_TRUE(std::ranges::equal(winner, wide_winner));
    RT_KERNEL(MaxPoolBackward<float>, diff_dst.data(), winner.data(), g, block, diff_src.data());
    ExpectNear(diff_src, naive_diff_src, 1e-6F, "diff_src");
    std::ranges::fill(diff_src, NAN);
    RT_KERNEL(MaxPoolBackwardWide<float>, diff_dst.data(), wide_winner.data(), g, block,
              diff_src.data());
    ExpectNear(diff_src, naive_diff_src, 1e-6F, "diff_src, wide");
  }
}

TEST_P(KernelsTest, AveragePool) {
  // Overlapping rows, a column and a row that no window covers, a count other than the size.
  const std::vector<PoolSpan> rows = {{0, 3, 3}, {2, 5, 4}},
                              columns = {{0, 2, 2}, {2, 3, 2}, {4, 33, 29}};
  const AveragePoolGeometry g{
      .H = 6, .W = 33, .OH = 2, .OW = 3, .rows = rows.data(), .columns = columns.data()};
  for (const int64_t block : kBlocks) {
    const int64_t src_floats = g.H * g.W * block, dst_floats = g.OH * g.OW * block;
    const Floats src = Random(src_floats, 1), diff_dst = Random(dst_floats, 2);
    Floats naive_dst(dst_floats), naive_diff_src(src_floats);
    for (int64_t o = 0; o < dst_floats; ++o) {
      const PoolSpan row = rows[o / block / g.OW], column = columns[o / block % g.OW];
      const float share = 1 / static_cast<float>(row.count * column.count);
      for (int64_t h = row.begin; h < row.end; ++h) {
        for (int64_t w = column.begin; w < column.end; ++w) {
          const int64_t i = (h * g.W + w) * block + o % block;
          naive_dst[o] += src[i] * share;
          naive_diff_src[i] += diff_dst[o] * share;
        }
      }
    }
    Floats dst(dst_floats), diff_src(src_floats, NAN);
    RT_KERNEL(AveragePoolForward<float>, src.data(), g, block, dst.data());
    RT_KERNEL(AveragePoolBackward<float>, diff_dst.data(), g, block, diff_src.data());
    ExpectNear(dst, naive_dst, 1e-5F, "dst");
    ExpectNear(diff_src, naive_diff_src, 1e-6F, "diff_src");
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, KernelsTest, testing::ValuesIn(MachineIsas()),
                         [](const auto& info) { return std::string(KernelIsaName(info.param)); });

}  // namespace
}  // namespace ringtail
