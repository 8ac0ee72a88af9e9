// Linear at sizes where it works in blocks, in parallel and past the caches, for every instruction
// set of the machine, against the definition in double precision. (The gradient check has the small
// ones.)
#include "layers/linear/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "core/kernel_isa.h"
#include "core/parallel_for.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

struct Case {
  BlobDesc src;
  int64_t M;
  bool bias = true;

  int64_t K() const { return src.C * src.plane(); }
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.src.ShapeString() << " in blocks of " << c.src.block << " to " << c.M;
}

struct Result {
  Floats dst, diff_src, diff_weight, diff_bias;
  bool operator==(const Result&) const = default;
};

class LinearTest : public testing::TestWithParam<Case> {
 protected:
  LinearTest() {
    config_.set_out_features(GetParam().M);
    config_.set_bias(GetParam().bias);
    config_.mutable_bias_init()->mutable_constant()->set_value(0.25F);
    src_ = RandomPlain(GetParam().src, 1, -1, 2);
    diff_dst_ = RandomPlain({GetParam().src.N, GetParam().M}, 2, -1, 2);
    isas_.resize(static_cast<size_t>(best_isa_) + 1);
  }
  ~LinearTest() override {
    SetKernelIsaForTest(best_isa_);
    SetNumComputeThreads(threads_before_);
  }

  Result Run(int threads, Activation activation = Activation::kNone) {
    SetNumComputeThreads(threads);
    LinearLayer layer(config_);
    layer.FuseActivation(activation);
    LayerRunner runner(&layer, {GetParam().src});
    EXPECT_TRUE(runner.status().ok());
    const auto weight = runner.parameter(0).value();
    weight_.assign(weight.begin(), weight.end());
    Result result;
    result.dst = runner.Forward({src_});
    result.diff_src = runner.Backward(diff_dst_)[0];
    const auto diff_weight = runner.parameter(0).grad();
    result.diff_weight.assign(diff_weight.begin(), diff_weight.end());
    if (GetParam().bias) {
      const auto diff_bias = runner.parameter(1).grad();
      result.diff_bias.assign(diff_bias.begin(), diff_bias.end());
    }
    EXPECT_EQ(runner.problems(), "");
    return result;
  }

  static void ExpectClose(const Floats& actual, const Doubles& expected, const char* what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    double error = 0, norm = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
      norm += expected[i] * expected[i];
    }
    EXPECT_LT(std::sqrt(error / norm), 1e-6) << what;
  }

  // Some NaN must reach every output that depends on it, and no other.
  static void ExpectNanExactlyAt(const Floats& values, int64_t stride, int64_t first, int64_t count,
                                 const char* what) {
    for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
      const bool expected = i % stride >= first && i % stride < first + count;
      ASSERT_EQ(std::isnan(values[i]), expected) << what << " " << i;
    }
  }

  const KernelIsa best_isa_ = SelectedKernelIsa();
  std::vector<KernelIsa> isas_ = {KernelIsa::kBaseline, KernelIsa::kAvx2, KernelIsa::kAvx512};
  const int threads_before_ = NumComputeThreads();
  LinearConfig config_;
  Floats src_, diff_dst_, weight_;
};

TEST_P(LinearTest, AllDirections) {
  const int64_t N = GetParam().src.N, K = GetParam().K(), M = GetParam().M;
  Run(1);  // sets weight_
  Doubles dst(N * M), diff_src(N * K), diff_weight(M * K), diff_bias(GetParam().bias ? M : 0);
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t m = 0; m < M; ++m) {
      const double diff = diff_dst_[n * M + m];
      double sum = GetParam().bias ? 0.25 : 0;
      for (int64_t k = 0; k < K; ++k) {
        const double s = src_[n * K + k], w = weight_[m * K + k];
        sum += s * w;
        diff_src[n * K + k] += diff * w;
        diff_weight[m * K + k] += diff * s;
      }
      dst[n * M + m] = sum;
      if (GetParam().bias) diff_bias[m] += diff;
    }
  }
  for (const KernelIsa isa : isas_) {
    SCOPED_TRACE(KernelIsaName(isa));
    SetKernelIsaForTest(isa);
    const Result result = Run(2);
    ExpectClose(result.dst, dst, "dst");
    ExpectClose(result.diff_src, diff_src, "diff_src");
    ExpectClose(result.diff_weight, diff_weight, "diff_weight");
    if (GetParam().bias) ExpectClose(result.diff_bias, diff_bias, "diff_bias");
  }
}

TEST_P(LinearTest, TheSameBitsWithAnyNumberOfThreads) {
  for (const KernelIsa isa : isas_) {
    SCOPED_TRACE(KernelIsaName(isa));
    SetKernelIsaForTest(isa);
    const Result one = Run(1);
    EXPECT_TRUE(Run(2) == one);
    EXPECT_TRUE(Run(5) == one);
  }
}

TEST_P(LinearTest, NanPasses) {
  const int64_t N = GetParam().src.N, K = GetParam().K(), M = GetParam().M;
  src_[(N - 1) * K + K / 2] = NAN;
  diff_dst_[(N - 1) * M + M / 2] = NAN;
  for (const KernelIsa isa : isas_) {
    SCOPED_TRACE(KernelIsaName(isa));
    SetKernelIsaForTest(isa);
    for (const Activation activation : {Activation::kNone, Activation::kRelu6}) {
      ExpectNanExactlyAt(Run(2, activation).dst, N * M, (N - 1) * M, M, "dst");
    }
    const Result result = Run(2);
    ExpectNanExactlyAt(result.diff_src, N * K, (N - 1) * K, K, "diff_src");
    for (int64_t i = 0; i < M * K; ++i) {
      const bool expected = i / K == M / 2 || i % K == K / 2;
      ASSERT_EQ(std::isnan(result.diff_weight[i]), expected) << "diff_weight " << i;
    }
    if (GetParam().bias) ExpectNanExactlyAt(result.diff_bias, M, M / 2, 1, "diff_bias");
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearTest,
                         testing::Values(Case{{1, 1300}, 1000},         // one sample
                                         Case{{3, 5}, 2},               // nothing is a whole vector
                                         Case{{8, 77, 5, 5, 16}, 517},  // few samples, in blocks
                                         Case{{33, 1027}, 2},           // few outputs
                                         Case{{9, 600}, 9, false},      // just not few
                                         Case{{33, 130, 3, 3, 8}, 1000},  // ends of every kind
                                         Case{{32, 64, 6, 6, 16}, 300},   // whole vectors
                                         Case{{300, 600}, 40},  // more than a block of samples
                                         Case{{600, 100}, 70},  // and more than a block of steps
                                         Case{{13, 2048}, 2064}));  // diff_weight past the caches

}  // namespace
}  // namespace ringtail
