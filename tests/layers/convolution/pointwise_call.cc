#include "tests/layers/convolution/pointwise_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "core/kernels/bfloat16.h"
#include "core/parallel_for.h"
#include "layers/convolution/pointwise/pointwise_bf16_data.h"
#include "layers/convolution/pointwise/pointwise_bf16_weights.h"
#include "layers/convolution/pointwise/pointwise_convolution.h"
#include "layers/kernels/pointwise.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/test_affine.h"
#include "tests/layers/test_gradient.h"
#include "tests/layers/test_sums.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;
using Doubles = std::vector<double>;

constexpr size_t kUnalignedBytes = 16;  // within a cache line

void ExpectPaddingIsZero(const BlobDesc& desc, const float* blob, const char* what) {
  BlobDesc full = desc;  // all channels of all blocks
  full.C = desc.channel_blocks() * desc.block;
  const std::vector<float> plain = CopyToPlain(full, blob);
  for (int64_t i = 0; i < static_cast<int64_t>(plain.size()); ++i) {
    if (i / desc.plane() % full.C < desc.C) continue;
    ASSERT_EQ(plain[i], 0) << "padding channel of " << what;
  }
}

bool AllFinite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
}

ConvolutionProblem With(ConvolutionProblem p, const PointwiseOptions& options) {
  const auto expected = [](Mapped m) { return m == Mapped::kOnTheWay || m == Mapped::kBefore; };
  p.src_is_affine = expected(options.src);
  p.dst_is_normalized = options.moments || expected(options.diff_dst);
  return p;
}

std::unique_ptr<ConvolutionAlgorithm> Create(const ConvolutionProblem& p, Direction direction) {
  if (p.src.type == BlobType::kF32) return CreatePointwise(p, direction);
  if (direction == Direction::kBackwardWeights) return PointwiseBf16Weights::Create(p, direction);
  return PointwiseBf16Data::Create(p, direction);
}

bool Written(Mapped mapped) {
  return mapped == Mapped::kBefore || mapped == Mapped::kBeforeUnaware;
}

// The memory of one call, and what comes of it.
class PointwiseCall {
 public:
  PointwiseCall(const ConvolutionProblem& p, const PointwiseTensors& data, Direction direction,
                const PointwiseOptions& options)
      : p_(With(p, options)),
        data_(data),
        options_(options),
        algorithm_(Create(p_, direction)),
        affine_(p.src, options.low, options.high),
        gradient_(p.dst, options.low, options.high),
        scratch_(algorithm_->scratch_bytes()) {
    const bool forward = direction == Direction::kForward;
    const bool data_wanted = direction == Direction::kBackwardData;
    const bool both = direction == Direction::kBackward;
    t_.scratch = scratch_.data();
    if (!data_wanted || options.sums) SetSrc();
    forward ? SetDst() : SetDiffDst();
    if (forward || data_wanted || both) t_.weight = data.weight.data();
    if (data_wanted || both) SetDiffSrc();
    if (!forward && !data_wanted) SetDiffParameters();
  }

  PointwiseResult Run() {
    const std::vector<std::byte> src(src_.data(), src_.data() + src_.bytes());
    const std::vector<std::byte> diff_dst(diff_dst_.data(), diff_dst_.data() + diff_dst_.bytes());
    algorithm_->Run(t_);
    for (const GuardedBuffer* b : {&src_, &dst_, &diff_dst_, &diff_src_, &scratch_}) {
      EXPECT_TRUE(b->GuardsIntact());
    }
    EXPECT_TRUE(std::ranges::equal(src, std::span(src_.data(), src_.bytes()))) << "src";
    EXPECT_TRUE(std::ranges::equal(diff_dst, std::span(diff_dst_.data(), diff_dst_.bytes())))
        << "diff_dst was written";
    const bool finite = AllFinite(data_.src) && AllFinite(data_.diff_dst);  // else padding is not 0
    if (t_.dst != nullptr) {
      if (finite) ExpectPaddingIsZero(p_.dst, t_.dst, "dst");
      result_.dst = CopyToPlain(p_.dst, t_.dst);
    }
    if (t_.diff_src != nullptr) {
      if (finite) ExpectPaddingIsZero(p_.src, t_.diff_src, "diff_src");
      result_.diff_src = CopyToPlain(p_.src, t_.diff_src);
    }
    return result_;
  }

 private:
  void SetSrc() {
    src_ = GuardedBuffer(p_.src.bytes());
    CopyToLayout(data_.src, p_.src, src_.floats());
    if (Written(options_.src)) affine_.Apply(p_.src, src_.floats());
    if (options_.src == Mapped::kOnTheWay) t_.src_affine = affine_.affine();
    t_.src = src_.floats();
  }
  void SetDst() {
    const size_t shift = options_.unaligned ? kUnalignedBytes : 0;
    dst_ = GuardedBuffer(p_.dst.bytes() + shift);
    t_.dst = dst_.floats() + shift / sizeof(float);
    if (p_.bias) t_.bias = data_.bias.data();
    if (!options_.moments) return;
    BlobMoments& moments = t_.dst_moments;
    moments.part_pixels = result_.part_pixels = algorithm_->moments_pixels();
    result_.mean.assign(moments.elements(p_.dst), NAN);
    result_.m2 = result_.mean;
    moments.mean = result_.mean.data();
    moments.m2 = result_.m2.data();
  }
  void SetDiffDst() {
    diff_dst_ = GuardedBuffer(p_.dst.bytes());
    CopyToLayout(data_.diff_dst, p_.dst, diff_dst_.floats());
    if (Written(options_.diff_dst)) gradient_.Apply(diff_dst_.floats());
    if (options_.diff_dst == Mapped::kOnTheWay) t_.diff_dst_map = gradient_.gradient();
    t_.diff_dst = diff_dst_.floats();
  }
  void SetDiffSrc() {
    diff_src_ = GuardedBuffer(p_.src.bytes());
    t_.diff_src = diff_src_.floats();
    t_.add_to_diff_src = options_.add;
    if (options_.add) CopyToLayout(data_.src, p_.src, t_.diff_src);
    if (!options_.sums) return;
    BlobGradientSums& sums = t_.diff_src_sums;
    sums.part_pixels = result_.part_pixels = algorithm_->gradient_sums_pixels();
    result_.g.assign(sums.elements(p_.src), NAN);
    result_.gx = result_.g;
    sums.g = result_.g.data();
    sums.gx = result_.gx.data();
  }
  void SetDiffParameters() {
    result_.diff_weight.assign(data_.weight.size(), NAN);
    t_.diff_weight = result_.diff_weight.data();
    if (!p_.bias) return;
    result_.diff_bias.assign(p_.dst.C, NAN);
    t_.diff_bias = result_.diff_bias.data();
  }

  const ConvolutionProblem p_;
  const PointwiseTensors& data_;
  const PointwiseOptions options_;
  std::unique_ptr<ConvolutionAlgorithm> algorithm_;
  TestAffine affine_;
  TestGradient gradient_;
  GuardedBuffer src_, dst_, diff_dst_, diff_src_, scratch_;
  ConvolutionTensors t_;
  PointwiseResult result_;
};

// Calls fn(src offset, weight offset, dst offset), all plain, for every product in the definition.
template <typename Fn>
void ForEachProduct(const ConvolutionProblem& p, const Fn& fn) {
  const BlobDesc &s = p.src, &d = p.dst;
  for (int64_t n = 0; n < d.N; ++n)
    for (int64_t k = 0; k < d.C; ++k)
      for (int64_t c = 0; c < s.C; ++c)
        for (int64_t y = 0; y < d.H; ++y) {
          const int64_t src_row = ((n * s.C + c) * s.H + y * p.window.SH) * s.W;
          const int64_t dst_row = ((n * d.C + k) * d.H + y) * d.W;
          for (int64_t x = 0; x < d.W; ++x) {
            fn(src_row + x * p.window.SW, k * s.C + c, dst_row + x);
          }
        }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const PointwiseShape& s) {
  return out << s.N << "x" << s.C << "x" << s.H << "x" << s.W << " to " << s.K
             << " channels, stride " << s.stride << (s.bias ? ", bias" : "") << ", activation "
             << static_cast<int>(s.activation);
}

ConvolutionProblem PointwiseProblem(const PointwiseShape& s, BlobType type) {
  const int64_t lanes = RT_KERNEL(PointwiseLanes)();
  ConvolutionProblem p;
  p.window.SH = p.window.SW = s.stride;
  p.src = {s.N, s.C, s.H, s.W, lanes};
  p.dst = {s.N, s.K, (s.H - 1) / s.stride + 1, (s.W - 1) / s.stride + 1, lanes};
  p.src.type = p.dst.type = type;
  p.bias = s.bias;
  p.activation = s.activation;
  return p;
}

PointwiseTensors::PointwiseTensors(const ConvolutionProblem& p)
    : src(RandomPlain(p.src, 1, -1, 2)),
      diff_dst(RandomPlain(p.dst, 2)),
      weight(RandomPlain({1, p.dst.C * p.src.C}, 3)),
      bias(RandomPlain({1, p.dst.C}, 4)) {
  if (p.src.type == BlobType::kF32) return;
  for (std::vector<float>* tensor : {&src, &diff_dst, &weight, &bias}) {
    for (float& x : *tensor) x = Widen(Narrow(x));
  }
}

PointwiseResult RunPointwise(const ConvolutionProblem& p, const PointwiseTensors& data,
                             Direction direction, const PointwiseOptions& options) {
  const int before = NumComputeThreads();
  SetNumComputeThreads(options.threads);
  const PointwiseResult result = PointwiseCall(p, data, direction, options).Run();
  SetNumComputeThreads(before);
  return result;
}

PointwiseTensors MappedData(const ConvolutionProblem& p, const PointwiseTensors& data,
                            const PointwiseOptions& options) {
  PointwiseTensors mapped = data;
  if (options.src != Mapped::kNot) {
    const GuardedBuffer src(p.src.bytes());
    CopyToLayout(data.src, p.src, src.floats());
    TestAffine(p.src, options.low, options.high).Apply(p.src, src.floats());
    mapped.src = CopyToPlain(p.src, src.floats());
  }
  if (options.diff_dst != Mapped::kNot) {
    const GuardedBuffer diff_dst(p.dst.bytes());
    CopyToLayout(data.diff_dst, p.dst, diff_dst.floats());
    TestGradient(p.dst, options.low, options.high).Apply(diff_dst.floats());
    mapped.diff_dst = CopyToPlain(p.dst, diff_dst.floats());
  }
  return mapped;
}

// Against sums over what was written, in double. Deviations are taken from a part's first value, in
// float, so that an error is small beside the largest of them.
void ExpectMomentsOf(const ConvolutionProblem& p, const PointwiseResult& result) {
  const BlobDesc& d = p.dst;
  const BlobMoments moments = {{.part_pixels = result.part_pixels}};
  ASSERT_GT(result.part_pixels, 0);
  const int64_t parts = moments.parts(d), channels = d.channel_blocks() * d.block;
  ASSERT_EQ(static_cast<int64_t>(result.mean.size()), d.N * parts * channels);
  for (int64_t i = 0; i < d.N * parts * channels; ++i) {
    const int64_t c = i % channels, part = i / channels % parts, n = i / channels / parts;
    if (c >= d.C) {
      ASSERT_EQ(result.mean[i], 0) << "padding channel";
      ASSERT_EQ(result.m2[i], 0) << "padding channel";
      continue;
    }
    const int64_t pixels = moments.PixelsOf(d, part);
    const float* x = &result.dst[(n * d.C + c) * d.plane() + part * result.part_pixels];
    const auto count = static_cast<double>(pixels);
    double mean = x[0], m2 = 0, reach = 0;
    for (int64_t k = 0; k < pixels; ++k) mean += (static_cast<double>(x[k]) - x[0]) / count;
    for (int64_t k = 0; k < pixels; ++k) {
      m2 += (x[k] - mean) * (x[k] - mean);
      reach = std::max(reach, std::abs(static_cast<double>(x[k]) - x[0]));
    }
    ASSERT_NEAR(result.mean[i], mean, 3e-6 * reach + 1e-12 * std::abs(mean)) << "channel " << c;
    ASSERT_NEAR(result.m2[i], m2, 5e-6 * count * reach * reach) << "channel " << c;
  }
}

void ExpectSumsOf(const ConvolutionProblem& p, const PointwiseTensors& data,
                  const PointwiseOptions& options, const PointwiseResult& result) {
  const BlobDesc& s = p.src;
  const BlobGradientSums sums = {{.part_pixels = result.part_pixels}};
  ASSERT_GT(result.part_pixels, 0);
  ASSERT_EQ(static_cast<int64_t>(result.g.size()), sums.elements(s));
  const TestAffine affine(s, options.low, options.high);
  const ExpectedGradientSums expected(s, data.src, result.diff_src, affine.affine(), sums);
  expected.ExpectNear(result.g, result.gx);
}

Doubles DefinedForward(const ConvolutionProblem& p, const PointwiseTensors& data) {
  Doubles dst(PlainElements(p.dst));
  ForEachProduct(p, [&](int64_t s, int64_t w, int64_t d) {
    dst[d] += static_cast<double>(data.src[s]) * data.weight[w];
  });
  for (size_t i = 0; i < dst.size(); ++i) {
    if (p.bias) dst[i] += data.bias[i / p.dst.plane() % p.dst.C];
    dst[i] = std::clamp<double>(dst[i], LowerBound(p.activation), UpperBound(p.activation));
  }
  return dst;
}

Doubles DefinedDiffSrc(const ConvolutionProblem& p, const PointwiseTensors& data) {
  Doubles diff_src(PlainElements(p.src));
  ForEachProduct(p, [&](int64_t s, int64_t w, int64_t d) {
    diff_src[s] += static_cast<double>(data.diff_dst[d]) * data.weight[w];
  });
  return diff_src;
}

Doubles DefinedDiffWeight(const ConvolutionProblem& p, const PointwiseTensors& data) {
  Doubles diff_weight(data.weight.size());
  ForEachProduct(p, [&](int64_t s, int64_t w, int64_t d) {
    diff_weight[w] += static_cast<double>(data.src[s]) * data.diff_dst[d];
  });
  return diff_weight;
}

double RelativeError(const std::vector<float>& actual, const Doubles& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return norm == 0 ? error : std::sqrt(error / norm);
}

}  // namespace ringtail
