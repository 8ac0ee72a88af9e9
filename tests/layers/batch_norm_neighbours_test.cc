// The work that batch norm leaves to the layers next to it: they take its moments and the sums of
// its backward for it, and its gradient as a map.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/parallel_for.h"
#include "layers/batch_norm.h"
#include "layers/kernels/batch_norm.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/test_sums.h"

namespace ringtail {
namespace {

using Floats = std::vector<float>;

// A batch norm with parameters and memory, as the net has it.
class BatchNorm {
 public:
  BatchNorm(const BlobDesc& desc, Activation activation) : desc_(desc), layer_(config_) {
    if (activation != Activation::kNone) layer_.FuseActivation(activation);
    const ShapeInfo info = layer_.InferShape({{desc}}).value();
    std::vector<ParameterSpec> parameters, buffers;
    for (const ParameterRequest& r : info.parameters) {
      (r.is_buffer ? buffers : parameters).push_back(r.spec);
    }
    arena_ = ParameterArena::Create(parameters, buffers).value();
    for (const Parameter& p : arena_->parameters()) pointers_.push_back(&p);
    for (const Parameter& p : arena_->buffers()) pointers_.push_back(&p);
    std::ranges::copy(RandomPlain({1, desc.C}, 1, -2, 3), parameter("weight").value().begin());
    std::ranges::copy(RandomPlain({1, desc.C}, 2, -1, 4), parameter("bias").value().begin());
    const bool needs[] = {true};
    const LayerPlan plan =
        layer_.Setup({.src = {{desc}}, .parameters = pointers_, .needs_diff_src = needs}).value();
    state_ = GuardedBuffer(plan.state_bytes);
    scratch_ = GuardedBuffer(plan.scratch_bytes);
  }

  // Null where it is not to be read or written.
  void Forward(const float* src, float* dst, const BlobMoments& moments = {}) {
    state_.FillWithNan();
    scratch_.FillWithNan();
    const float* const sources[] = {src};
    layer_.Forward({.src = sources,
                    .dst = dst,
                    .state = state_.data(),
                    .scratch = scratch_.data(),
                    .step = &step_,
                    .fusion = {.src_moments = moments}});
    ExpectGuards();
  }
  void Backward(const float* src, float* diff_dst, float* diff_src,
                const BlobGradientSums& sums = {}) {
    scratch_.FillWithNan();
    const float* const sources[] = {src};
    float* const gradients[] = {diff_src};
    layer_.Backward({.src = sources,
                     .diff_dst = diff_dst,
                     .diff_src = gradients,
                     .state = state_.data(),
                     .scratch = scratch_.data(),
                     .step = &step_,
                     .fusion = {.diff_dst_sums = sums}});
    ExpectGuards();
  }

  ChannelAffine affine() const { return layer_.DstAffine(state_.data()); }
  ChannelGradient gradient(const float* src) const { return layer_.DiffSrcMap(src, state_.data()); }
  const Parameter& parameter(const char* name) const { return *arena_->FindParameter(name); }
  Floats gradients() const { return {arena_->grads().begin(), arena_->grads().end()}; }
  Floats statistics() const {
    return {arena_->buffer_values().begin(), arena_->buffer_values().end()};
  }

 private:
  void ExpectGuards() const { EXPECT_TRUE(state_.GuardsIntact() && scratch_.GuardsIntact()); }

  const BlobDesc desc_;
  BatchNormConfig config_;
  BatchNormLayer layer_;
  std::unique_ptr<ParameterArena> arena_;
  std::vector<const Parameter*> pointers_;
  GuardedBuffer state_, scratch_;
  StepContext step_;
};

// The moments of parts of a blob, by their definition.
struct TestMoments {
  TestMoments(const BlobDesc& d, const float* blob, int64_t part_pixels) {
    moments.part_pixels = part_pixels;
    mean.resize(moments.elements(d));
    m2.resize(mean.size());
    for (int64_t n = 0; n < d.N; ++n)
      for (int64_t part = 0; part < moments.parts(d); ++part)
        for (int64_t c = 0; c < d.channel_blocks() * d.block; ++c) {
          const int64_t block = c / d.block, lane = c % d.block;
          const int64_t at = moments.At(d, n, part, block) + lane;
          const int64_t plane = (n * d.channel_blocks() + block) * d.plane();
          const int64_t pixels = moments.PixelsOf(d, part);
          const auto x = [&](int64_t i) -> double {
            return blob[(plane + part * part_pixels + i) * d.block + lane];
          };
          for (int64_t i = 0; i < pixels; ++i) mean[at] += x(i) / static_cast<double>(pixels);
          for (int64_t i = 0; i < pixels; ++i) m2[at] += (x(i) - mean[at]) * (x(i) - mean[at]);
        }
    moments.mean = mean.data();
    moments.m2 = m2.data();
  }
  std::vector<double> mean, m2;
  BlobMoments moments;
};

void ExpectNear(const Floats& actual, const Floats& expected, double tolerance = 1e-6) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
  }
}

struct Case {
  BlobDesc src;
  Activation activation;
};

class BatchNormNeighboursTest : public testing::TestWithParam<Case> {
 protected:
  BatchNormNeighboursTest() : src_(d_.bytes()), diff_dst_(d_.bytes()) {
    Floats plain = RandomPlain(d_, 3, -3, 5);
    for (size_t i = 0; i < plain.size(); ++i) {
      plain[i] += static_cast<float>(i / d_.plane() % d_.C);   // means that differ
      plain[i] += static_cast<float>(i % d_.plane()) * 0.02F;  // ... and those of parts
    }
    CopyToLayout(plain, d_, src_.floats());
    CopyToLayout(RandomPlain(d_, 4), d_, diff_dst_.floats());
  }
  ExpectedGradientSums Sums(const ChannelAffine& affine, int64_t part_pixels) const {
    return {d_,
            CopyToPlain(d_, src_.floats()),
            CopyToPlain(d_, diff_dst_.floats()),
            affine,
            {part_pixels}};
  }
  const BlobDesc d_ = GetParam().src;
  const Activation activation_ = GetParam().activation;
  GuardedBuffer src_, diff_dst_;
};

TEST_P(BatchNormNeighboursTest, MomentsOfPartsGiveTheStatisticsOfTheWhole) {
  const GuardedBuffer expected(d_.bytes()), actual(d_.bytes());
  BatchNorm own(d_, activation_);
  own.Forward(src_.floats(), expected.floats());
  for (const int64_t part : {d_.plane(), (d_.plane() + 1) / 2, int64_t{10}, int64_t{1}}) {
    const TestMoments taken(d_, src_.floats(), part);
    BatchNorm with(d_, activation_);
    with.Forward(src_.floats(), actual.floats(), taken.moments);
    ExpectNear(with.statistics(), own.statistics());
    ExpectNear(CopyToPlain(d_, actual.floats()), CopyToPlain(d_, expected.floats()));
  }
}

TEST_P(BatchNormNeighboursTest, DeferredItDoesNotReadWhatOthersHave) {
  const TestMoments taken(d_, src_.floats(), 10);
  const GuardedBuffer dst(d_.bytes());
  BatchNorm writes(d_, activation_), defers(d_, activation_);
  writes.Forward(src_.floats(), dst.floats(), taken.moments);
  defers.Forward(nullptr, nullptr, taken.moments);
  EXPECT_EQ(defers.statistics(), writes.statistics());
  for (int64_t i = 0; i < d_.N * d_.channel_blocks(); ++i) {
    float* plane = src_.floats() + i * d_.plane() * d_.block;
    RT_KERNEL(BatchNormApply<float>, plane, d_.plane(), d_.block,
              defers.affine().From(i % d_.channel_blocks() * d_.block), plane);
  }
  EXPECT_EQ(CopyToPlain(d_, src_.floats()), CopyToPlain(d_, dst.floats()));
}

TEST_P(BatchNormNeighboursTest, TheMapIsTheGradientThatItWrites) {
  const int before = NumComputeThreads();
  for (const int threads : {1, 2, 3}) {
    SetNumComputeThreads(threads);
    const GuardedBuffer diff_src(d_.bytes()), mapped(d_.bytes());
    BatchNorm writes(d_, activation_), maps(d_, activation_);
    writes.Forward(src_.floats(), nullptr);
    writes.Backward(src_.floats(), diff_dst_.floats(), diff_src.floats());
    maps.Forward(src_.floats(), nullptr);
    std::copy_n(diff_dst_.floats(), d_.elements(), mapped.floats());
    maps.Backward(src_.floats(), mapped.floats(), nullptr);
    EXPECT_TRUE(std::equal(mapped.floats(), mapped.floats() + d_.elements(), diff_dst_.floats()))
        << "diff_dst is still to be read";
    EXPECT_EQ(maps.gradients(), writes.gradients());
    for (int64_t i = 0; i < d_.N * d_.channel_blocks(); ++i) {
      const int64_t at = i * d_.plane() * d_.block, c = i % d_.channel_blocks() * d_.block;
      const ChannelGradient g = maps.gradient(src_.floats()).From(c);
      ASSERT_EQ(g.src, src_.floats());
      RT_KERNEL(BatchNormGradient<float>, g.src + at, mapped.floats() + at, d_.plane(), d_.block,
                g.affine, g.slope, g.offset, mapped.floats() + at);
    }
    EXPECT_TRUE(std::equal(mapped.floats(), mapped.floats() + d_.elements(), diff_src.floats()));
  }
  SetNumComputeThreads(before);
}

TEST_P(BatchNormNeighboursTest, SumsOfPartsGiveTheGradientsOfTheWhole) {
  constexpr double kTolerance = 1e-5;  // it adds products in float that cancel
  const GuardedBuffer expected(d_.bytes()), actual(d_.bytes());
  BatchNorm own(d_, activation_);
  own.Forward(src_.floats(), nullptr);
  own.Backward(src_.floats(), diff_dst_.floats(), expected.floats());
  for (const int64_t part : {d_.plane(), (d_.plane() + 1) / 2, int64_t{10}, int64_t{1}}) {
    BatchNorm with(d_, activation_), maps(d_, activation_);
    with.Forward(src_.floats(), nullptr);
    maps.Forward(src_.floats(), nullptr);
    ExpectedGradientSums taken = Sums(with.affine(), part);
    with.Backward(src_.floats(), diff_dst_.floats(), actual.floats(), taken.sums());
    maps.Backward(nullptr, nullptr, nullptr, taken.sums());  // reads no blob
    ExpectNear(with.gradients(), own.gradients(), kTolerance);
    ExpectNear(CopyToPlain(d_, actual.floats()), CopyToPlain(d_, expected.floats()), kTolerance);
    EXPECT_EQ(maps.gradients(), with.gradients());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNormNeighboursTest,
                         testing::Values(Case{{3, 20, 9, 7, 8}, Activation::kRelu6},
                                         Case{{2, 32, 14, 14, 16}, Activation::kRelu},
                                         Case{{1, 17, 13, 11, 16}, Activation::kNone},
                                         Case{{5, 96, 7, 7, 16}, Activation::kRelu6},
                                         Case{{2, 64, 5, 5, 8}, Activation::kRelu6},
                                         Case{{3, 5, 8, 8, 1}, Activation::kRelu}));

// Parts whose means are far from zero and near each other: their squares must not cancel.
TEST(BatchNormPartsTest, LargeMeansKeepTheVariance) {
  const BlobDesc d{4, 16, 12, 12, 16};
  const GuardedBuffer src(d.bytes());
  CopyToLayout(RandomPlain(d, 5, 4095, 4097), d, src.floats());
  BatchNorm own(d, Activation::kNone), with(d, Activation::kNone);
  own.Forward(src.floats(), nullptr);
  with.Forward(src.floats(), nullptr, TestMoments(d, src.floats(), 50).moments);
  ExpectNear(with.statistics(), own.statistics());
}

TEST(BatchNormPartsTest, NanInAPartReachesItsChannel) {
  const BlobDesc d{2, 16, 6, 6, 16};
  const GuardedBuffer src(d.bytes());
  CopyToLayout(RandomPlain(d, 5), d, src.floats());
  src.floats()[20 * 16 + 3] = NAN;  // channel 3
  BatchNorm with(d, Activation::kRelu6);
  with.Forward(src.floats(), nullptr, TestMoments(d, src.floats(), 10).moments);
  for (int c = 0; c < 16; ++c) EXPECT_EQ(std::isnan(with.affine().mean[c]), c == 3);
}

TEST(BatchNormPartsTest, NanInASumReachesTheGradientsOfItsChannel) {
  const BlobDesc d{2, 16, 6, 6, 16};
  const GuardedBuffer src(d.bytes()), diff_dst(d.bytes()), diff_src(d.bytes());
  CopyToLayout(RandomPlain(d, 5), d, src.floats());
  CopyToLayout(RandomPlain(d, 6), d, diff_dst.floats());
  BatchNorm with(d, Activation::kNone);
  with.Forward(src.floats(), nullptr);
  ExpectedGradientSums taken(d, RandomPlain(d, 5), RandomPlain(d, 6), with.affine(), {10});
  taken.sums().g[16 + 3] = NAN;  // channel 3 of the second part
  with.Backward(src.floats(), diff_dst.floats(), diff_src.floats(), taken.sums());
  for (int c = 0; c < 16; ++c) {
    EXPECT_EQ(std::isnan(with.parameter("bias").grad()[c]), c == 3);
    EXPECT_EQ(std::isnan(diff_src.floats()[c]), c == 3);
  }
}

}  // namespace
}  // namespace ringtail
