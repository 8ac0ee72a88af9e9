#include "apps/trainer/update/gradient_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "apps/run.pb.h"
#include "core/random.h"

namespace ringtail {
namespace {

constexpr int64_t kBatch = 8, kSize = 16;

// Without batch norm, whose statistics depend on how a batch is cut; with dropout, which must not.
constexpr char kNet[] = R"(net {
  layer { name: "conv" convolution { out_channels: 8 kernel: 3 padding: 1 } }
  layer { name: "relu" relu {} }
  layer { name: "pool" max_pool { kernel: 2 } }
  layer { name: "dropout" dropout {} }
  layer { name: "fc" linear { out_features: 3 } }
  layer { name: "loss" softmax_cross_entropy { label_smoothing: 0.1 } }
})";

class GradientPassTest : public testing::Test {
 protected:
  GradientPassTest() : images_(kBatch * 3 * kSize * kSize * sizeof(float)) {
    RunConfig config;
    EXPECT_TRUE(ParseTextConfig(kNet, "net", &config, nullptr).ok());
    model_ = Model::Create(config.net(), kSize).value();
    model_->Initialize(1);
    Rng rng(RngKey(1).With(kTestStream));
    for (float& value : images_.floats()) value = rng.Normal();
  }

  BatchView batch() const { return {images_.floats().data(), labels_}; }

  struct Result {
    LossResult loss;
    std::vector<float> grads;
  };
  Result Run(int64_t parts) {
    const auto pass =
        GradientPass::Create(model_.get(), {.batch = kBatch, .parts = parts, .image_size = kSize})
            .value();
    pass->Run(batch(), {.step = 3});  // the second run must not see the first
    const LossResult loss = pass->Run(batch(), {.step = 4});
    const std::span<float> grads = model_->arena().grads();
    return {loss, {grads.begin(), grads.end()}};
  }

  AlignedBuffer images_;
  std::vector<int32_t> labels_ = {0, 1, 2, 0, 1, 2, 2, 1};
  std::unique_ptr<Model> model_;
};

TEST_F(GradientPassTest, PartsAddUpToTheWholeBatch) {
  const Result whole = Run(1);
  EXPECT_GT(whole.loss.loss_sum, 1);
  for (const int64_t parts : {2, 4, 8}) {
    const Result cut = Run(parts);
    EXPECT_NEAR(cut.loss.loss_sum, whole.loss.loss_sum, 1e-5 * whole.loss.loss_sum);
    EXPECT_EQ(cut.loss.correct, whole.loss.correct);
    EXPECT_EQ(cut.loss.count, kBatch);
    EXPECT_THAT(cut.grads, testing::Pointwise(testing::FloatNear(2e-5F), whole.grads)) << parts;
  }
  EXPECT_GT(*std::max_element(whole.grads.begin(), whole.grads.end()), 0.01F);
}

// As ranks do it: rows 0 to 3 of each of two global batches of 4.
TEST_F(GradientPassTest, BatchesOfAStepAddUpToOneLargeBatch) {
  struct Listener : public GradientListener {
    void OnLoss(const LossResult& loss) override { counts.push_back(loss.count); }
    void OnReady(const Parameter& /*parameter*/) override { ++ready; }
    std::vector<int64_t> counts;
    size_t ready = 0;
  };
  const Result whole = Run(1);
  for (const int64_t parts : {1, 2}) {
    Listener listener;
    const auto pass =
        GradientPass::Create(
            model_.get(),
            {.batch = kBatch / 2, .parts = parts, .most_batches = 3, .image_size = kSize})
            .value();
    LossResult loss;
    for (const int64_t step : {3, 4}) {
      for (const int64_t index : {0, 1}) {
        const int64_t first = index * kBatch / 2;
        const BatchView half = {images_.floats().data() + first * 3 * kSize * kSize,
                                std::span<const int32_t>(labels_).subspan(first, kBatch / 2)};
        loss = pass->Run(half, {.step = step, .index = index, .count = 2}, &listener);
      }
    }
    EXPECT_NEAR(loss.loss_sum, whole.loss.loss_sum, 1e-5 * whole.loss.loss_sum) << parts;
    EXPECT_EQ(loss.correct, whole.loss.correct);
    EXPECT_EQ(loss.count, kBatch);
    EXPECT_THAT(model_->arena().grads(), testing::Pointwise(testing::FloatNear(2e-5F), whole.grads))
        << parts;
    EXPECT_THAT(listener.counts, testing::ElementsAre(kBatch, kBatch)) << "once per step";
    EXPECT_EQ(listener.ready, 2 * model_->arena().parameters().size());
  }
}

TEST_F(GradientPassTest, RowsWithoutASampleDoNotCount) {
  labels_ = {0, 1, -1, -1, -1, -1, 2, 1};
  EXPECT_EQ(Run(1).loss.count, 4);
  const Result cut = Run(4);  // the second and third part are empty
  EXPECT_EQ(cut.loss.count, 4);
  EXPECT_THAT(cut.grads, testing::Pointwise(testing::FloatNear(2e-5F), Run(1).grads));
}

TEST_F(GradientPassTest, NamesWhereNumbersStopBeingFinite) {
  const auto pass =
      GradientPass::Create(model_.get(), {.batch = kBatch, .parts = 2, .image_size = kSize})
          .value();
  model_->arena().FindParameter("fc.weight")->value()[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(pass->Run(batch(), {}).loss_sum));
  EXPECT_THAT(pass->DescribeNonFinite(batch(), {}), testing::HasSubstr("fc"));
}

TEST_F(GradientPassTest, NamesAnImageThatIsNotFinite) {
  const auto pass =
      GradientPass::Create(model_.get(), {.batch = kBatch, .parts = 2, .image_size = kSize})
          .value();
  images_.floats().back() = std::numeric_limits<float>::quiet_NaN();  // in the second part
  pass->Run(batch(), {});
  EXPECT_THAT(pass->DescribeNonFinite(batch(), {}), testing::HasSubstr("image"));
}

}  // namespace
}  // namespace ringtail
