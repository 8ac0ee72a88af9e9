#include "layers/lrn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/kernel_isa.h"
#include "core/parallel_for.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

LrnConfig Config(int size, float beta) {
  LrnConfig config;
  config.set_size(size);
  config.set_alpha(0.5F);  // large, so that the neighbours count
  config.set_beta(beta);
  config.set_k(2);
  return config;
}

double Normaliser(const LrnConfig& config, const BlobDesc& d, const std::vector<float>& src,
                  int64_t n, int64_t c, int64_t p) {
  double sum = 0;
  for (int64_t j = c - config.size() / 2; j <= c + config.size() / 2; ++j) {
    if (j < 0 || j >= d.C) continue;
    sum += std::pow(src[(n * d.C + j) * d.plane() + p], 2);
  }
  return config.k() + config.alpha() / config.size() * sum;
}

TEST(LrnTest, FollowsItsFormulaInEveryLayoutAndInstructionSet) {
  const KernelIsa best = SelectedKernelIsa();
  for (const auto& [size, beta] : {std::pair{5, 0.75F}, {3, 0.5F}, {1, 0.75F}, {41, 0.75F}}) {
    const LrnConfig config = Config(size, beta);
    for (const BlobDesc shape :
         {BlobDesc{2, 17, 5, 7}, BlobDesc{3, 3, 1, 1}, BlobDesc{1, 1, 4, 4}}) {
      const std::vector<float> src = RandomPlain(shape, 1, -3, 3);
      for (const KernelIsa isa : {KernelIsa::kBaseline, KernelIsa::kAvx2, KernelIsa::kAvx512}) {
        if (isa > best) break;
        SetKernelIsaForTest(isa);
        for (const int64_t block : {1, 8, 16}) {
          BlobDesc desc = shape;
          desc.block = block;
          LrnLayer layer(config);
          LayerRunner runner(&layer, {desc});
          ASSERT_TRUE(runner.status().ok());
          const std::vector<float> dst = runner.Forward({src});
          for (int64_t i = 0; i < PlainElements(shape); ++i) {
            const int64_t row = i / shape.plane(), n = row / shape.C, c = row % shape.C;
            const double s = Normaliser(config, shape, src, n, c, i % shape.plane());
            ASSERT_NEAR(dst[i], src[i] * std::pow(s, -beta), 1e-6)
                << "size " << size << " block " << block << " element " << i;
          }
          EXPECT_EQ(runner.problems(), "");
        }
      }
    }
  }
  SetKernelIsaForTest(best);
}

TEST(LrnTest, DoesNotDependOnThreadsOrPlace) {
  const LrnConfig config = Config(5, 0.75F);
  const BlobDesc desc = {3, 20, 13, 11, 8};
  const std::vector<float> src = RandomPlain(desc, 1), diff_dst = RandomPlain(desc, 2);
  const int threads = NumComputeThreads();
  std::vector<float> expected_dst, expected_diff;
  for (const int n : {1, 2, 5}) {
    for (const bool in_place : {false, true}) {
      SetNumComputeThreads(n);
      LrnLayer layer(config);
      LayerRunner runner(&layer, {desc}, {.in_place = in_place});
      const std::vector<float> dst = runner.Forward({src}), diff = runner.Backward(diff_dst)[0];
      if (expected_dst.empty()) expected_dst = dst, expected_diff = diff;
      EXPECT_EQ(dst, expected_dst) << n << " threads";
      EXPECT_EQ(diff, expected_diff) << n << " threads";
      EXPECT_EQ(runner.problems(), "");
    }
  }
  SetNumComputeThreads(threads);
  LrnLayer layer(config);
  LayerRunner evaluation(&layer, {desc}, {.training = false, .in_place = true});
  EXPECT_EQ(evaluation.Forward({src}), expected_dst);
  EXPECT_EQ(evaluation.problems(), "");
}

TEST(LrnTest, RejectsNumbersOutOfRange) {
  const auto message = [](const LrnConfig& config) {
    LrnLayer layer(config);
    const auto info = layer.InferShape(std::array{BlobDesc{1, 4, 2, 2}});
    return info.ok() ? std::string() : info.status().message();
  };
  LrnConfig config;
  EXPECT_EQ(message(config), "");
  config.set_size(4);
  EXPECT_THAT(message(config), testing::HasSubstr("size is 4"));
  config.set_size(-1);
  EXPECT_THAT(message(config), testing::HasSubstr("size is -1"));
  config.Clear();
  config.set_alpha(-1);
  EXPECT_THAT(message(config), testing::HasSubstr("alpha is -1"));
  config.Clear();
  config.set_beta(INFINITY);
  EXPECT_THAT(message(config), testing::HasSubstr("beta is inf"));
  config.Clear();
  config.set_k(0);
  EXPECT_THAT(message(config), testing::HasSubstr("k is 0"));
}

}  // namespace
}  // namespace ringtail
