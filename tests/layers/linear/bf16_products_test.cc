// The bf16 products of a linear layer beside the definition in double precision, by each instruction
// of this machine, on bf16 and on f32 rows; then the layer on bf16 blobs. A machine without such
// products, or with a cap below AVX-512, has none.
#include "layers/linear/bf16_products.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/kernel_isa.h"
#include "core/parallel_for.h"
#include "layers/convolution/tiles/has_tiles.h"
#include "layers/element_types/blob_elements.h"
#include "layers/element_types/through_f32_layer.h"
#include "layers/kernels/bf16/bf16_dot_tiles.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "layers/linear/linear.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// Relative, in the Euclidean norm. Operands are numbers that bf16 can hold, so that products are
// exact and a sum has f32's rounding alone; one rounding to bf16 is 1.7e-3.
constexpr double kSumTolerance = 1e-6, kBf16Tolerance = 2.5e-3;
// Of operands that are rounded: two of them.
constexpr double kRoundedTolerance = 4e-3;

std::vector<Bf16Unit> Units() {
  std::vector<Bf16Unit> units;
  if (HasBf16Tiles()) units.push_back(Bf16Unit::kTiles);
  if (RT_KERNEL(HasBf16Products)()) units.push_back(Bf16Unit::kPairs);
  return units;
}

const char* Name(Bf16Unit unit) { return unit == Bf16Unit::kTiles ? "tiles" : "pairs"; }

struct Result {
  Floats dst, diff_src, diff_weight, diff_bias;
  bool operator==(const Result&) const = default;
};

void Round(Floats* values) {
  for (float& value : *values) value = Widen(Narrow(value));
}

double Error(const Floats& actual, const Doubles& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(actual[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(error / norm);
}

struct Operands {
  explicit Operands(const LinearSizes& s)
      : sizes(s),
        src(RandomPlain({s.N, s.K}, 1, -1, 2)),
        weight(RandomPlain({s.M, s.K}, 2)),
        bias(RandomPlain({1, s.M}, 3)),
        diff_dst(RandomPlain({s.N, s.M}, 4, -1, 2)) {}

  // What is defined, of these numbers.
  struct Defined {
    Doubles dst, diff_src, diff_weight, diff_bias;
  };
  Defined Define() const {
    const auto& [N, K, M] = sizes;
    Defined d{Doubles(N * M), Doubles(N * K), Doubles(M * K), Doubles(M)};
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t m = 0; m < M; ++m) {
        const double diff = diff_dst[n * M + m];
        double sum = bias[m];
        for (int64_t k = 0; k < K; ++k) {
          const double s = src[n * K + k], w = weight[m * K + k];
          sum += s * w;
          d.diff_src[n * K + k] += diff * w;
          d.diff_weight[m * K + k] += diff * s;
        }
        d.dst[n * M + m] = std::max(sum, 0.0);
        d.diff_bias[m] += diff;
      }
    }
    return d;
  }

  LinearSizes sizes;
  Floats src, weight, bias, diff_dst;
};

// A matrix as the products see it, between words that they must not touch.
class Rows {
 public:
  Rows(BlobType type, int64_t count)
      : desc_{.N = 1, .C = count, .type = type}, memory_(desc_.bytes()) {
    memory_.FillWithNan();
  }
  Rows(BlobType type, const Floats& values) : Rows(type, std::ssize(values)) {
    CopyToLayout(values, desc_, memory_.floats());
  }
  float* data() { return memory_.floats(); }
  Floats Values() const {
    EXPECT_TRUE(memory_.GuardsIntact());
    return CopyToPlain(desc_, memory_.floats());
  }

 private:
  BlobDesc desc_;
  GuardedBuffer memory_;
};

Result Compute(const Operands& o, Bf16Unit unit, BlobType type, int threads,
               Activation activation = Activation::kRelu) {
  SetNumComputeThreads(threads);
  const auto& [N, K, M] = o.sizes;
  const Bf16LinearProducts products(o.sizes, type, unit);
  GuardedBuffer scratch(products.scratch_bytes());
  Rows src(type, o.src), diff_dst(type, o.diff_dst), dst(type, N * M), diff_src(type, N * K);
  Rows diff_weight(BlobType::kF32, M * K), diff_bias(BlobType::kF32, M);
  // Whatever was there before must not matter.
  const auto forget = [&] { scratch.FillWithNan(); };
  forget();
  products.Forward(src.data(), {.weight = o.weight.data(), .bias = o.bias.data()}, activation,
                   dst.data(), scratch.data());
  forget();
  products.BackwardWeights(src.data(), diff_dst.data(), diff_weight.data(), scratch.data());
  forget();
  products.BackwardData(diff_dst.data(), o.weight.data(), diff_src.data(), scratch.data());
  products.BackwardBias(diff_dst.data(), diff_bias.data());
  EXPECT_TRUE(scratch.GuardsIntact());
  return {dst.Values(), diff_src.Values(), diff_weight.Values(), diff_bias.Values()};
}

class Bf16ProductsTest : public testing::TestWithParam<LinearSizes> {
 protected:
  void SetUp() override {
    if (units_.empty()) GTEST_SKIP() << "no bf16 products";
  }
  ~Bf16ProductsTest() override { SetNumComputeThreads(threads_before_); }

  const std::vector<Bf16Unit> units_ = Units();
  const int threads_before_ = NumComputeThreads();
};

TEST_P(Bf16ProductsTest, AreTheDefinition) {
  Operands o(GetParam());
  for (Floats* values : {&o.src, &o.weight, &o.diff_dst}) Round(values);
  const Operands::Defined expected = o.Define();
  for (const Bf16Unit unit : units_) {
    for (const BlobType type : {BlobType::kF32, BlobType::kBf16}) {
      SCOPED_TRACE(std::string(Name(unit)) + ", rows of " + BlobTypeName(type));
      const double tolerance = type == BlobType::kF32 ? kSumTolerance : kBf16Tolerance;
      const Result result = Compute(o, unit, type, 2);
      EXPECT_LT(Error(result.dst, expected.dst), tolerance);
      EXPECT_LT(Error(result.diff_src, expected.diff_src), tolerance);
      EXPECT_LT(Error(result.diff_weight, expected.diff_weight), kSumTolerance);
      EXPECT_LT(Error(result.diff_bias, expected.diff_bias), kSumTolerance);
    }
  }
}

// A bf16 result is the f32 one, rounded to nearest even; and f32 rows are rounded as such, too.
TEST_P(Bf16ProductsTest, RoundToNearestEven) {
  const Operands exact(GetParam());
  Operands rounded = exact;
  for (Floats* values : {&rounded.src, &rounded.weight, &rounded.diff_dst}) Round(values);
  for (const Bf16Unit unit : units_) {
    SCOPED_TRACE(Name(unit));
    Result f32 = Compute(rounded, unit, BlobType::kF32, 1);
    const Result of_exact = Compute(exact, unit, BlobType::kF32, 1);
    EXPECT_EQ(of_exact.dst, f32.dst);
    EXPECT_EQ(of_exact.diff_src, f32.diff_src);
    EXPECT_EQ(of_exact.diff_weight, f32.diff_weight);
    const Result bf16 = Compute(exact, unit, BlobType::kBf16, 1);
    Round(&f32.dst);
    Round(&f32.diff_src);
    EXPECT_EQ(bf16.dst, f32.dst);
    EXPECT_EQ(bf16.diff_src, f32.diff_src);
    EXPECT_EQ(bf16.diff_weight, f32.diff_weight);
  }
}

TEST_P(Bf16ProductsTest, TheSameBitsWithAnyNumberOfThreads) {
  const Operands o(GetParam());
  for (const Bf16Unit unit : units_) {
    SCOPED_TRACE(Name(unit));
    const Result one = Compute(o, unit, BlobType::kBf16, 1);
    EXPECT_TRUE(Compute(o, unit, BlobType::kBf16, 2) == one);
    EXPECT_TRUE(Compute(o, unit, BlobType::kBf16, 5) == one);
  }
}

// A number that is not finite reaches every result that depends on it, and no other.
TEST_P(Bf16ProductsTest, WhatIsNotFiniteStaysWhereItIs) {
  const auto& [N, K, M] = GetParam();
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    Operands o(GetParam());
    for (Floats* values : {&o.src, &o.weight, &o.diff_dst}) {
      for (float& value : *values) value = std::fabs(value) + 0.5F;  // infinity times that is one
    }
    o.src[(N - 1) * K + K / 2] = bad;
    o.diff_dst[(N - 1) * M + M / 2] = bad;
    for (const Bf16Unit unit : units_) {
      for (const BlobType type : {BlobType::kF32, BlobType::kBf16}) {
        SCOPED_TRACE(Name(unit));
        const Result result = Compute(o, unit, type, 2, Activation::kNone);
        const auto expect = [&](float actual, bool is_bad, const char* what, int64_t i) {
          const bool same = std::isnan(bad) ? std::isnan(actual) : actual == bad;
          ASSERT_EQ(is_bad ? same : !std::isfinite(actual), is_bad) << what << " " << i;
        };
        for (int64_t i = 0; i < N * M; ++i) expect(result.dst[i], i / M == N - 1, "dst", i);
        for (int64_t i = 0; i < N * K; ++i) expect(result.diff_src[i], i / K == N - 1, "src", i);
        for (int64_t i = 0; i < M; ++i) expect(result.diff_bias[i], i == M / 2, "bias", i);
        for (int64_t i = 0; i < M * K; ++i) {
          const bool row = i / K == M / 2, column = i % K == K / 2;
          if (row && column) {
            ASSERT_EQ(std::isnan(bad) ? std::isnan(result.diff_weight[i])
                                      : result.diff_weight[i] == bad * bad,
                      true);
            continue;
          }
          expect(result.diff_weight[i], row || column, "weight", i);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, Bf16ProductsTest,
    testing::Values(LinearSizes{1, 1, 1}, LinearSizes{1, 33, 17},
                    LinearSizes{7, 1030, 301},  // blocks with ends, two depths
                    LinearSizes{65, 130, 100}, LinearSizes{64, 96, 64},
                    LinearSizes{16, 1100, 700},  // strips, panels, depths of backward-data
                    LinearSizes{600, 70, 90},    // many samples: small strips
                    LinearSizes{2200, 65, 40}),
    [](const auto& info) {
      return fmt::format("{}x{}to{}", info.param.N, info.param.K, info.param.M);
    });

// The gradient is beyond the caches, and written around them; its end is not.
TEST(Bf16ProductsOfLargeLayers, AreStreamed) {
  const LinearSizes sizes{2, 2048, 2080};
  if (Units().empty()) GTEST_SKIP() << "no bf16 products";
  Operands o(sizes);
  for (Floats* values : {&o.src, &o.weight, &o.diff_dst}) Round(values);
  SetNumComputeThreads(2);
  AlignedBuffer diff_weight(sizes.M * sizes.K * sizeof(float));
  const Operands::Defined expected = o.Define();
  for (const Bf16Unit unit : Units()) {
    const Bf16LinearProducts products(sizes, BlobType::kF32, unit);
    GuardedBuffer scratch(products.scratch_bytes());
    products.BackwardWeights(o.src.data(), o.diff_dst.data(), diff_weight.floats().data(),
                             scratch.data());
    const Floats actual(diff_weight.floats().begin(), diff_weight.floats().end());
    EXPECT_LT(Error(actual, expected.diff_weight), kSumTolerance) << Name(unit);
  }
}

TEST(Bf16UnitTest, IsOneThatThisMachineHas) {
  const Bf16Unit unit = FastBf16Unit();
  EXPECT_EQ(FastBf16Unit(), unit);
  EXPECT_EQ(unit == Bf16Unit::kTiles, HasBf16Tiles());
  if (unit == Bf16Unit::kPairs) {
    EXPECT_TRUE(RT_KERNEL(HasBf16Products)());
  }
}

// The layer, on bf16 blobs in either layout, whatever products this machine has.
class Bf16LinearTest : public testing::TestWithParam<BlobDesc> {};

TEST_P(Bf16LinearTest, IsTheDefinition) {
  BlobDesc src = GetParam();
  src.type = BlobType::kBf16;
  const int64_t K = src.C * src.plane(), M = 45;
  LinearConfig config;
  config.set_out_features(M);
  config.mutable_bias_init()->mutable_normal()->set_std(0.5F);
  std::unique_ptr<Layer> layer = std::make_unique<LinearLayer>(config);
  EXPECT_TRUE(layer->FuseActivation(Activation::kRelu));
  const BlobType types[] = {src.type};
  EXPECT_EQ(layer->RunsOn(types, BlobType::kBf16), FastBf16Unit() != Bf16Unit::kNone);
  EXPECT_FALSE(layer->RunsOn(types, BlobType::kF32));
  if (!layer->RunsOn(types, BlobType::kBf16)) {
    layer = std::make_unique<ThroughF32Layer>(std::move(layer));
  }
  LayerRunner runner(layer.get(), {src}, {.dst_type = BlobType::kBf16});
  ASSERT_TRUE(runner.status().ok()) << runner.status().message();
  Operands o({.N = src.N, .K = K, .M = M});
  Round(&o.src);
  Round(&o.diff_dst);
  o.weight.assign(runner.parameter(0).value().begin(), runner.parameter(0).value().end());
  o.bias.assign(runner.parameter(1).value().begin(), runner.parameter(1).value().end());
  const Floats dst = runner.Forward({o.src});
  const Operands::Defined expected = o.Define();
  EXPECT_LT(Error(dst, expected.dst), kRoundedTolerance);
  // Where ReLU is 0 nothing comes back.
  for (size_t i = 0; i < dst.size(); ++i) o.diff_dst[i] = dst[i] > 0 ? o.diff_dst[i] : 0;
  const Operands::Defined gradients = o.Define();
  EXPECT_LT(Error(runner.Backward(o.diff_dst)[0], gradients.diff_src), kRoundedTolerance);
  const Floats diff_weight(runner.parameter(0).grad().begin(), runner.parameter(0).grad().end());
  EXPECT_LT(Error(diff_weight, gradients.diff_weight), kSumTolerance);
  const Floats diff_bias(runner.parameter(1).grad().begin(), runner.parameter(1).grad().end());
  EXPECT_LT(Error(diff_bias, gradients.diff_bias), kSumTolerance);
  EXPECT_EQ(runner.problems(), "");
}

INSTANTIATE_TEST_SUITE_P(Blobs, Bf16LinearTest,
                         testing::Values(BlobDesc{7, 131}, BlobDesc{65, 64},
                                         BlobDesc{3, 19, 3, 2, 16}, BlobDesc{3, 32, 5, 5, 16},
                                         BlobDesc{5, 19, 3, 2, 8}));

// Logits, and a layer with `precision: FLOAT32`, are products of f32 numbers.
TEST(LinearOnBf16Rows, IsExactWhereDstIsF32) {
  LinearConfig config;
  config.set_out_features(5);
  ThroughF32Layer layer(std::make_unique<LinearLayer>(config));
  const BlobDesc src{.N = 4, .C = 50, .type = BlobType::kBf16};
  LayerRunner runner(&layer, {src}, {.dst_type = BlobType::kF32});
  ASSERT_TRUE(runner.status().ok()) << runner.status().message();
  Operands o({.N = 4, .K = 50, .M = 5});
  Round(&o.src);
  o.weight.assign(runner.parameter(0).value().begin(), runner.parameter(0).value().end());
  o.bias.assign(5, 0);
  const Floats dst = runner.Forward({o.src});
  Doubles expected = o.Define().dst;
  Floats positive = dst;
  for (float& value : positive) value = std::max(value, 0.0F);
  EXPECT_LT(Error(positive, expected), kSumTolerance);
}

}  // namespace
}  // namespace ringtail
