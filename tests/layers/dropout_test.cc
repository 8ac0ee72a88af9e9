#include "layers/dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/parallel_for.h"
#include "layers/kernels/dropout.h"
#include "layers/net.pb.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

constexpr uint64_t kKey = 77;

DropoutConfig Config(float rate) {
  DropoutConfig config;
  config.set_rate(rate);
  return config;
}

// The output of a layer with this rate for all ones: the mask, scaled.
std::vector<float> Mask(float rate, const BlobDesc& desc, const StepContext& step,
                        uint64_t key = kKey) {
  const DropoutConfig config = Config(rate);
  DropoutLayer layer(config, key);
  LayerRunner runner(&layer, {desc});
  RT_CHECK(runner.status().ok(), runner.status().ToString());
  runner.step() = step;
  return runner.Forward({std::vector<float>(PlainElements(desc), 1.0F)});
}

// The mask's definition, word by word, from core's Philox.
std::vector<float> DefinedMask(float rate, const BlobDesc& desc, const StepContext& step) {
  std::vector<float> mask;
  for (int64_t n = 0; n < desc.N; ++n) {
    const uint64_t key = RngKey(step.seed)
                             .With(kDropoutStream)
                             .With(step.step)
                             .With(kKey)
                             .With(static_cast<uint64_t>(step.first_sample + n))
                             .bits();
    for (int64_t c = 0; c < desc.C; ++c) {
      for (int64_t p = 0; p < desc.plane(); ++p) {
        const auto words =
            Philox4x32({static_cast<uint32_t>(p), static_cast<uint32_t>(c / 4), 0, 0}, key);
        mask.push_back(words[c % 4] < rate * 0x1p32 ? 0.0F : 1 / (1 - rate));
      }
    }
  }
  return mask;
}

const StepContext kStep = {
    .training = true, .seed = 3, .step = 9, .first_sample = 40, .labels = {}};

TEST(DropoutTest, MaskIsWhatIsDefinedInEveryLayoutAndInstructionSet) {
  const KernelIsa best = SelectedKernelIsa();
  for (const BlobDesc shape : {BlobDesc{3, 17, 5, 3}, BlobDesc{2, 6, 1, 1}, BlobDesc{1, 1030, 1, 1},
                               BlobDesc{1, 3, 23, 29}, BlobDesc{2, 32, 9, 40}}) {
    const std::vector<float> expected = DefinedMask(0.3F, shape, kStep);
    for (const KernelIsa isa : {KernelIsa::kBaseline, KernelIsa::kAvx2, KernelIsa::kAvx512}) {
      if (isa > best) break;
      SetKernelIsaForTest(isa);
      for (const int64_t block : {1, 8, 16}) {
        BlobDesc desc = shape;
        desc.block = block;
        EXPECT_EQ(Mask(0.3F, desc, kStep), expected)
            << shape.ShapeString() << " in blocks of " << block << ", " << KernelIsaName(isa);
      }
    }
  }
  SetKernelIsaForTest(best);
}

TEST(DropoutTest, DropsTheGivenFraction) {
  const BlobDesc desc = {8, 64, 16, 16, 16};
  for (const float rate : {0.0F, 0.1F, 0.5F, 0.9F}) {
    const std::vector<float> mask = Mask(rate, desc, kStep);
    const auto count = static_cast<double>(mask.size());
    const double dropped = static_cast<double>(std::ranges::count(mask, 0.0F)) / count;
    EXPECT_NEAR(dropped, rate, 5 * std::sqrt(rate * (1 - rate) / count)) << rate;
    EXPECT_FLOAT_EQ(*std::ranges::max_element(mask), 1 / (1 - rate));
  }
}

TEST(DropoutTest, MaskFollowsTheSampleNotTheRow) {
  const BlobDesc all = {6, 5, 3, 3}, half = {3, 5, 3, 3};
  const std::vector<float> whole = Mask(0.5F, all, kStep);
  StepContext second = kStep;
  second.first_sample += 3;  // as on another process, or in the next part of an accumulated batch
  std::vector<float> parts = Mask(0.5F, half, kStep);
  const std::vector<float> rest = Mask(0.5F, half, second);
  EXPECT_NE(parts, rest);
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, whole);
}

TEST(DropoutTest, MaskChangesWithSeedStepAndLayerOnly) {
  const BlobDesc desc = {2, 16, 8, 8, 8};
  const std::vector<float> mask = Mask(0.5F, desc, kStep);
  StepContext other = kStep;
  other.seed = 4;
  EXPECT_NE(Mask(0.5F, desc, other), mask);
  other = kStep;
  other.step = 10;
  EXPECT_NE(Mask(0.5F, desc, other), mask);
  EXPECT_NE(Mask(0.5F, desc, kStep, kKey + 1), mask);
  const int threads = NumComputeThreads();
  SetNumComputeThreads(3);
  EXPECT_EQ(Mask(0.5F, desc, kStep), mask);
  SetNumComputeThreads(threads);
}

TEST(DropoutTest, BackwardUsesTheMaskOfItsForward) {
  const BlobDesc desc = {2, 17, 5, 5, 16};
  for (const bool in_place : {false, true}) {
    const DropoutConfig config = Config(0.5F);
    DropoutLayer layer(config, kKey);
    LayerRunner runner(&layer, {desc}, {.in_place = in_place});
    ASSERT_TRUE(runner.status().ok());
    runner.step() = kStep;
    const std::vector<float> ones(PlainElements(desc), 1.0F);
    const std::vector<float> mask = runner.Forward({ones});
    EXPECT_EQ(runner.Backward(ones)[0], mask);
    EXPECT_EQ(runner.problems(), "");
  }
}

TEST(DropoutTest, EvaluationIsTheIdentity) {
  const BlobDesc desc = {3, 10, 7, 7, 8};
  const std::vector<float> src = RandomPlain(desc, 1);
  for (const bool in_place : {false, true}) {
    const DropoutConfig config = Config(0.5F);
    DropoutLayer layer(config, kKey);
    LayerRunner runner(&layer, {desc}, {.training = false, .in_place = in_place});
    ASSERT_TRUE(runner.status().ok());
    EXPECT_EQ(runner.Forward({src}), src);
    EXPECT_EQ(runner.problems(), "");
  }
}

TEST(DropoutTest, BackwardOfAnEvaluationIsTheIdentity) {
  const BlobDesc desc = {3, 10, 7, 7, 8};
  const std::vector<float> src = RandomPlain(desc, 1), diff_dst = RandomPlain(desc, 2);
  for (const bool in_place : {false, true}) {
    const DropoutConfig config = Config(0.5F);
    DropoutLayer layer(config, kKey);
    LayerRunner runner(&layer, {desc}, {.in_place = in_place});
    runner.step().training = false;
    EXPECT_EQ(runner.Forward({src}), src);
    EXPECT_EQ(runner.Backward(diff_dst)[0], diff_dst);
    EXPECT_EQ(runner.problems(), "");
  }
}

TEST(DropoutTest, RejectsImpossibleRates) {
  for (const float rate : {-0.1F, 1.0F, NAN, INFINITY}) {
    const DropoutConfig config = Config(rate);
    DropoutLayer layer(config, kKey);
    const auto info = layer.InferShape(std::array{BlobDesc{1, 1}});
    ASSERT_FALSE(info.ok()) << rate;
    EXPECT_EQ(info.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(info.status().message(), testing::HasSubstr("at least 0 and less than 1"));
    EXPECT_EQ(layer.failed_field(), "rate");
  }
}

}  // namespace
}  // namespace ringtail
