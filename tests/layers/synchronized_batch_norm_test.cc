// Batch norm over a batch that several ranks share: what one rank with the whole batch computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "core/parallel_for.h"
#include "core/random.h"
#include "layers/batch_norm.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

// Ranks as threads: adds their numbers up in the order of the ranks.
class ThreadRanks {
 public:
  explicit ThreadRanks(int ranks) : numbers_(ranks), arrived_(ranks) {}

  class Rank : public RankSum {
   public:
    Rank(ThreadRanks* all, int rank) : all_(all), rank_(rank) {}
    void Sum(std::span<double> numbers) override {
      ++calls;
      all_->numbers_[rank_].assign(numbers.begin(), numbers.end());
      all_->arrived_.arrive_and_wait();
      std::fill(numbers.begin(), numbers.end(), 0.0);
      for (const auto& of_rank : all_->numbers_) {
        for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += of_rank[i];
      }
      all_->arrived_.arrive_and_wait();
    }
    int calls = 0;

   private:
    ThreadRanks* all_;
    int rank_;
  };

 private:
  std::vector<std::vector<double>> numbers_;
  std::barrier<> arrived_;
};

struct Result {
  std::vector<float> dst, diff_src, diff_weight, diff_bias, running_mean, running_var;
};

std::vector<float> Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

Result RunLayer(const BlobDesc& desc, const std::vector<float>& src,
                const std::vector<float>& diff_dst, RankSum* ranks) {
  const BatchNormConfig config;
  BatchNormLayer layer(config);
  EXPECT_TRUE(layer.FuseActivation(Activation::kRelu));
  LayerRunner runner(&layer, {desc}, {.training = true});
  EXPECT_TRUE(runner.status().ok());
  for (int64_t c = 0; c < desc.C; ++c) {
    runner.parameter(0).value()[c] = 0.5F + 0.1F * static_cast<float>(c);
    runner.parameter(1).value()[c] = 0.2F * static_cast<float>(c) - 0.3F;
  }
  runner.step().ranks = ranks;
  Result result;
  result.dst = runner.Forward({src});
  result.diff_src = runner.Backward(diff_dst)[0];
  EXPECT_EQ(runner.problems(), "");
  result.diff_weight = Copy(runner.parameter(0).grad());
  result.diff_bias = Copy(runner.parameter(1).grad());
  result.running_mean = Copy(runner.parameter(2).value());
  result.running_var = Copy(runner.parameter(3).value());
  return result;
}

std::vector<float> Random(const BlobDesc& desc, uint64_t seed, float mean) {
  std::vector<float> values(desc.N * desc.C * desc.plane());
  Rng random(RngKey{seed});
  for (float& value : values) value = mean + random.Normal();
  return values;
}

class SynchronizedBatchNormTest : public testing::TestWithParam<BlobDesc> {};

TEST_P(SynchronizedBatchNormTest, RanksComputeWhatOneRankWithAllSamplesDoes) {
  const BlobDesc whole = GetParam();
  const std::vector<float> src = Random(whole, 1, 3), diff_dst = Random(whole, 2, 0.5F);
  const Result expected = RunLayer(whole, src, diff_dst, nullptr);

  const std::vector<int64_t> shares = {2, whole.N - 4, 2};  // uneven
  const int64_t sample = whole.C * whole.plane();
  ThreadRanks all(3);
  std::vector<Result> results(3);
  std::vector<std::jthread> threads;
  int64_t first = 0;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank, first] {
      SetNumComputeThreads(1);
      BlobDesc share = whole;
      share.N = shares[rank];
      const auto part = [&](const std::vector<float>& v) {
        return std::vector<float>(v.begin() + first * sample,
                                  v.begin() + (first + share.N) * sample);
      };
      ThreadRanks::Rank ranks(&all, rank);
      results[rank] = RunLayer(share, part(src), part(diff_dst), &ranks);
      EXPECT_EQ(ranks.calls, 2);  // one in each direction
    });
    first += shares[rank];
  }
  threads.clear();

  std::vector<float> dst, diff_src, diff_weight(whole.C), diff_bias(whole.C);
  for (const Result& r : results) {
    dst.insert(dst.end(), r.dst.begin(), r.dst.end());
    diff_src.insert(diff_src.end(), r.diff_src.begin(), r.diff_src.end());
    for (int64_t c = 0; c < whole.C; ++c) {
      diff_weight[c] += r.diff_weight[c];
      diff_bias[c] += r.diff_bias[c];
    }
    EXPECT_EQ(r.running_mean, results[0].running_mean);  // the same bits on all ranks
    EXPECT_EQ(r.running_var, results[0].running_var);
  }
  EXPECT_THAT(dst, testing::Pointwise(testing::FloatNear(2e-5F), expected.dst));
  EXPECT_THAT(diff_src, testing::Pointwise(testing::FloatNear(2e-5F), expected.diff_src));
  EXPECT_THAT(diff_weight, testing::Pointwise(testing::FloatNear(2e-4F), expected.diff_weight));
  EXPECT_THAT(diff_bias, testing::Pointwise(testing::FloatNear(2e-4F), expected.diff_bias));
  EXPECT_THAT(results[0].running_mean,
              testing::Pointwise(testing::FloatNear(1e-6F), expected.running_mean));
  EXPECT_THAT(results[0].running_var,
              testing::Pointwise(testing::FloatNear(1e-6F), expected.running_var));
}

INSTANTIATE_TEST_SUITE_P(Shapes, SynchronizedBatchNormTest,
                         testing::Values(BlobDesc{8, 5, 4, 3, 1}, BlobDesc{6, 17, 5, 5, 16},
                                         BlobDesc{7, 32, 6, 6, 8}, BlobDesc{9, 16, 1, 1, 1}));

// Means far from zero, and different on each rank: sums of squares must not lose the variance.
TEST(SynchronizedBatchNormStatisticsTest, LargeMeansKeepTheVariance) {
  const BlobDesc whole{8, 1, 8, 8, 1}, half{4, 1, 8, 8, 1};
  std::vector<float> src = Random(whole, 3, 1000);
  const std::vector<float> diff_dst = Random(whole, 4, 0);
  const size_t middle = src.size() / 2;
  const Result expected = RunLayer(whole, src, diff_dst, nullptr);
  ThreadRanks all(2);
  std::vector<Result> results(2);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        SetNumComputeThreads(1);
        ThreadRanks::Rank ranks(&all, rank);
        const auto part = [&](const std::vector<float>& v) {
          return std::vector<float>(v.begin() + rank * middle, v.begin() + (rank + 1) * middle);
        };
        results[rank] = RunLayer(half, part(src), part(diff_dst), &ranks);
      });
    }
  }
  EXPECT_NEAR(results[0].running_var[0], expected.running_var[0], 1e-5);
}

}  // namespace
}  // namespace ringtail
