// A linear layer that ranks divide among them computes what the whole layer computes on the samples
// of all ranks.
#include "layers/linear/sharded_linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "core/parallel_for.h"
#include "layers/element_types/bf16_unit.h"
#include "layers/element_types/through_f32_layer.h"
#include "layers/linear/linear.h"
#include "layers/net.pb.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/linear/thread_shards.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

struct Case {
  BlobDesc src;  // of one rank
  int64_t M = 1;
  int ranks = 2;
  int64_t pieces = 1;
  bool bias = true;
  bool training = true;
  ExchangeMoment moment = ExchangeMoment::kAtBegin;
  bool relu = true;

  LinearConfig config() const {
    LinearConfig config;
    config.set_out_features(static_cast<int>(M));
    config.set_bias(bias);
    config.mutable_bias_init()->mutable_normal()->set_std(0.5F);
    return config;
  }
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.src.ShapeString() << " in blocks of " << c.src.block << " to " << c.M << ", "
             << BlobTypeName(c.src.type) << ", " << c.ranks << " ranks, " << c.pieces << " pieces"
             << (c.training ? "" : ", evaluated");
}

struct Result {
  Floats dst, diff_src, weight, diff_weight, diff_bias;
};

Floats Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

// Of a rank's weight (0) or bias (1): along it they are moved.
Floats Direction(int rank, int parameter, size_t count) {
  return RandomPlain({1, static_cast<int64_t>(count)}, 10 + 2 * rank + parameter);
}

Result RunLayer(std::unique_ptr<Layer> layer, const BlobDesc& desc, const Case& c,
                const Floats& src, const Floats& diff_dst, ShardExchange* shards, int rank = 0,
                double moved = 0) {
  if (c.relu) {
    EXPECT_TRUE(layer->FuseActivation(Activation::kRelu));
  }
  const BlobType types[] = {desc.type};
  if (!layer->RunsOn(types, desc.type)) layer = std::make_unique<ThroughF32Layer>(std::move(layer));
  LayerRunner runner(layer.get(), {desc}, {.training = c.training, .dst_type = desc.type});
  EXPECT_TRUE(runner.status().ok()) << runner.status().message();
  runner.step().shards = shards;
  runner.step().training = c.training;
  for (int i = 0; i < (c.bias ? 2 : 1); ++i) {
    const std::span<float> value = runner.parameter(i).value();
    const Floats direction = Direction(rank, i, value.size());
    for (size_t j = 0; j < value.size(); ++j) {
      value[j] += static_cast<float>(moved * direction[j]);
    }
  }
  Result result;
  result.dst = runner.Forward({src});
  result.weight = Copy(runner.parameter(0).value());
  if (c.training) {
    result.diff_src = runner.Backward(diff_dst)[0];
    result.diff_weight = Copy(runner.parameter(0).grad());
    if (c.bias) result.diff_bias = Copy(runner.parameter(1).grad());
  }
  EXPECT_EQ(runner.problems(), "");
  const bool rounds = desc.type == BlobType::kBf16 && FastBf16Unit() != Bf16Unit::kNone;
  EXPECT_EQ(layer->Implementation().find("bf16") != std::string::npos, rounds);
  return result;
}

Floats Part(const Floats& all, int64_t first, int64_t count) {
  return {all.begin() + first, all.begin() + first + count};
}

constexpr double kF32Tolerance = 1e-6;
// Some of the numbers that are rounded at last were on the other side of a tie.
constexpr double kBf16Tolerance = 1e-3;

// To the rounding of sums in another order.
void ExpectClose(const Floats& actual, const Floats& expected, const char* what, BlobType type) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(actual[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  const double tolerance = type == BlobType::kF32 ? kF32Tolerance : kBf16Tolerance;
  EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(norm)) << what;
}

class ShardedLinearTest : public testing::TestWithParam<Case> {
 protected:
  ShardedLinearTest() : shards_(GetParam().ranks, GetParam().moment) {
    all_.N = GetParam().src.N * GetParam().ranks;
    src_ = RandomPlain(all_, 1);
    diff_dst_ = RandomPlain({all_.N, GetParam().M}, 2);
    if (all_.type == BlobType::kF32) return;
    for (Floats* values : {&src_, &diff_dst_}) {
      for (float& value : *values) value = Widen(Narrow(value));
    }
  }

  // With these inputs of all ranks, and parameters that are moved so far.
  std::vector<Result> RunRanks(const Floats& src, double moved = 0) {
    const Case& c = GetParam();
    std::vector<Result> results(c.ranks);
    std::vector<std::jthread> threads;
    threads.reserve(c.ranks);
    for (int rank = 0; rank < c.ranks; ++rank) {
      threads.emplace_back([&, rank] {
        SetNumComputeThreads(1);
        ThreadShards::Rank exchange(&shards_, rank);
        auto layer = std::make_unique<ShardedLinearLayer>(
            c.config(), LinearShard{.rank = rank, .ranks = c.ranks, .pieces = c.pieces});
        const int64_t first = rank * c.src.N;
        results[rank] =
            RunLayer(std::move(layer), c.src, c, Part(src, first * K(), c.src.N * K()),
                     Part(diff_dst_, first * c.M, c.src.N * c.M), &exchange, rank, moved);
      });
    }
    threads.clear();
    return results;
  }
  int64_t K() const { return all_.C * all_.plane(); }

  BlobDesc all_ = GetParam().src;
  ThreadShards shards_;
  Floats src_, diff_dst_;
};

TEST_P(ShardedLinearTest, RanksComputeWhatTheWholeLayerDoes) {
  const Case& c = GetParam();
  const BlobType type = c.src.type;
  const Result whole = RunLayer(std::make_unique<LinearLayer>(c.config()), all_, c, src_, diff_dst_,
                                /*shards=*/nullptr);
  const std::vector<Result> ranks = RunRanks(src_);
  for (int rank = 0; rank < c.ranks; ++rank) {
    SCOPED_TRACE(rank);
    const LinearShard shard{.rank = rank, .ranks = c.ranks};
    const int64_t first = shard.first(c.M), count = shard.count(c.M), row = rank * c.src.N;
    EXPECT_EQ(ranks[rank].weight, Part(whole.weight, first * K(), count * K()));
    ExpectClose(ranks[rank].dst, Part(whole.dst, row * c.M, c.src.N * c.M), "dst", type);
    if (!c.training) continue;
    ExpectClose(ranks[rank].diff_src, Part(whole.diff_src, row * K(), c.src.N * K()), "diff_src",
                type);
    ExpectClose(ranks[rank].diff_weight, Part(whole.diff_weight, first * K(), count * K()),
                "diff_weight", BlobType::kF32);
    if (c.bias) {
      ExpectClose(ranks[rank].diff_bias, Part(whole.diff_bias, first, count), "diff_bias",
                  BlobType::kF32);
    }
  }
}

double Dot(const Floats& a, const Floats& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// The loss is the sum of dst * diff_dst over all ranks. Without ReLU it is linear along src and along
// weights, so that differences are exact but for rounding.
class ShardedLinearGradientTest : public ShardedLinearTest {
 protected:
  double Loss(const std::vector<Result>& ranks) const {
    Floats dst;
    for (const Result& rank : ranks) dst.insert(dst.end(), rank.dst.begin(), rank.dst.end());
    return Dot(dst, diff_dst_);
  }
};

TEST_P(ShardedLinearGradientTest, IsTheSlopeOfDifferences) {
  constexpr double kStep = 0.1, kTolerance = 1e-4;
  const std::vector<Result> here = RunRanks(src_);

  const Floats along = RandomPlain(all_, 3);
  double slope = 0, parameters_slope = 0;
  for (int rank = 0; rank < GetParam().ranks; ++rank) {
    const Result& result = here[rank];
    const auto rows = static_cast<int64_t>(result.diff_src.size());
    slope += Dot(result.diff_src, Part(along, rank * rows, rows));
    parameters_slope += Dot(result.diff_weight, Direction(rank, 0, result.diff_weight.size())) +
                        Dot(result.diff_bias, Direction(rank, 1, result.diff_bias.size()));
  }
  const auto loss_at = [&](double step) {
    Floats src = src_;
    for (size_t i = 0; i < src.size(); ++i) src[i] += static_cast<float>(step * along[i]);
    return Loss(RunRanks(src));
  };
  EXPECT_NEAR((loss_at(kStep) - loss_at(-kStep)) / (2 * kStep), slope,
              kTolerance * std::abs(slope));
  EXPECT_NEAR((Loss(RunRanks(src_, kStep)) - Loss(RunRanks(src_, -kStep))) / (2 * kStep),
              parameters_slope, kTolerance * std::abs(parameters_slope));
}

constexpr BlobDesc kPlain{6, 40}, kBlocked{6, 19, 3, 2, 16};
constexpr BlobDesc kPlainBf16{.N = 6, .C = 40, .type = BlobType::kBf16};
constexpr BlobDesc kBlockedBf16{6, 19, 3, 2, 16, BlobType::kBf16};

INSTANTIATE_TEST_SUITE_P(
    Shapes, ShardedLinearTest,
    testing::Values(
        Case{.src = kPlain, .M = 8}, Case{.src = kPlain, .M = 8, .bias = false},
        Case{.src = kPlain, .M = 23, .ranks = 3},
        Case{.src = kPlain, .M = 23, .ranks = 3, .moment = ExchangeMoment::kAtWait},
        Case{.src = kPlain, .M = 23, .ranks = 3, .pieces = 2},
        Case{.src = kPlain, .M = 23, .ranks = 3, .pieces = 3, .moment = ExchangeMoment::kAtWait},
        Case{.src = kBlocked, .M = 33, .ranks = 4, .pieces = 6},
        Case{.src = kBlocked, .M = 33, .ranks = 4, .pieces = 6, .moment = ExchangeMoment::kAtWait},
        Case{.src = kBlocked, .M = 4, .ranks = 4, .pieces = 2},
        Case{.src = kPlainBf16, .M = 23, .ranks = 3},
        Case{.src = kBlockedBf16, .M = 33, .ranks = 4, .pieces = 2},
        Case{.src = kBlockedBf16, .M = 33, .ranks = 4, .training = false},
        Case{.src = kBlocked, .M = 33, .ranks = 4, .pieces = 4, .training = false},
        Case{.src = kPlain, .M = 8, .training = false, .moment = ExchangeMoment::kAtWait}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, ShardedLinearGradientTest,
    testing::Values(Case{.src = kPlain, .M = 23, .ranks = 3, .pieces = 2, .relu = false},
                    Case{.src = kBlocked, .M = 33, .ranks = 4, .relu = false}));

TEST(ShardedLinearErrors, FewerOutputsThanRanks) {
  ShardedLinearLayer layer(Case{.M = 3}.config(), {.rank = 0, .ranks = 4});
  const auto info = layer.InferShape(std::vector<BlobDesc>{kPlain});
  EXPECT_THAT(info.status().message(), HasSubstr("out_features is 3; 4 ranks"));
  EXPECT_EQ(layer.failed_field(), "out_features");
}

TEST(ShardedLinearErrors, AnErrorOfTheWholeLayerIsItsOwn) {
  ShardedLinearLayer layer(Case{.M = 0}.config(), {.rank = 0, .ranks = 4});
  EXPECT_FALSE(layer.InferShape(std::vector<BlobDesc>{kPlain}).ok());
  EXPECT_EQ(layer.failed_field(), "out_features");
}

TEST(ShardedLinearErrors, PiecesThatDoNotDivideTheBatch) {
  ShardedLinearLayer layer(Case{.M = 8}.config(), {.rank = 0, .ranks = 2, .pieces = 4});
  LayerRunner runner(&layer, {kPlain});
  EXPECT_THAT(runner.status().message(), HasSubstr("6 images at once, which cannot travel in 4"));
}

// What one rank makes of its own rows and outputs, to look for what is not finite.
TEST(AloneShards, TheOthersSendZeros) {
  AloneShards shards({.rank = 1, .ranks = 3});
  Floats gathered = {1, 2, 3, 4, 5, 6};
  shards.BeginAllGather(gathered);
  EXPECT_EQ(gathered, (Floats{0, 0, 3, 4, 0, 0}));
  Floats blocks = {1, 2, 3, 9, 9, 9};
  shards.BeginAllToAll(blocks);
  EXPECT_EQ(blocks, (Floats{1, 2, 3, 0, 2, 0}));
  Floats sums = {1, 2, 3};
  shards.BeginReduceScatter(sums);
  EXPECT_EQ(sums[1], 2);
}

}  // namespace
}  // namespace ringtail
