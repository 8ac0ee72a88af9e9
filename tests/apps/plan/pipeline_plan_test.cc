// What `plan` says of a pipeline: by facts that are made up, for a shipped network.
#include "apps/plan/pipeline_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/trainer/pipeline/stage_choice.h"
#include "layers/net/graph.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int64_t kBatch = 64;
constexpr double kForward = 0.01, kBackward = 0.02;  // seconds of an image

// Every image takes as long, in batches of any size.
PlannerFacts FactsOf(const LoadedConfig& loaded) {
  const auto model = CreateModel(loaded, /*allocate=*/false).value();
  PlannerFacts facts;
  facts.set_net(loaded.config.net().name());
  facts.set_cores(1);
  facts.set_image_size(128);
  for (int node = model->graph().size() - 1; node >= 0; --node) {
    for (const Parameter* p : model->parameters(node)) {
      if (p->is_buffer) continue;
      ParameterFacts* const parameter = facts.add_parameter();
      parameter->set_name(p->spec.name);
      for (const int64_t size : p->spec.shape) parameter->add_dimension(size);
    }
  }
  for (const int64_t batch : {1, 64}) {
    StepFacts* const step = facts.add_step();
    step->set_batch(batch);
    step->set_forward_s(kForward * static_cast<double>(batch));
    step->set_backward_s(kBackward * static_cast<double>(batch));
    for (int i = 0; i < facts.parameter_size(); ++i) step->add_finish_s(step->backward_s());
  }
  return facts;
}

class PipelinePlanTest : public testing::Test {
 protected:
  StatusOr<std::optional<PipelinePlan>> Plan(int hosts, double seconds_per_byte) const {
    NetworkFacts network{.hosts = hosts};
    network.links.between_hosts.seconds_per_byte = seconds_per_byte;
    return PlanPipeline(loaded_, facts_, network, kBatch);
  }

  const LoadedConfig loaded_ = LoadRunConfig("catdog_vgg", {}).value();
  const PlannerFacts facts_ = FactsOf(loaded_);
};

TEST_F(PipelinePlanTest, HostsThatWaitForLittleAreFaster) {
  const double one_host = 1 / (kForward + kBackward);
  const auto two = Plan(2, 0).value();
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->shape.stages, 2);
  EXPECT_EQ(two->shape.micro_batches, 8);  // 4 for each stage
  EXPECT_EQ(two->micro_batch, 8);
  EXPECT_NEAR(two->images_per_s, 2 * one_host * (1 - two->waits), 1e-6 * one_host);
  EXPECT_GT(two->images_per_s, 1.2 * one_host);
  EXPECT_THAT(DescribePipeline(*two, one_host), HasSubstr("it pays (--set "));
  // The cut is one that `train` takes.
  ASSERT_THAT(two->cut_after, SizeIs(1));
  const LoadedConfig staged =
      LoadRunConfig("catdog_vgg", std::vector<std::string>{"dist.model_parallel.pipeline.stages=2"})
          .value();
  EXPECT_TRUE(ChooseStage(staged, two->cut_after, 0, 2).ok());
}

// What the config has and stages do without is dropped: `train` takes what is said.
TEST_F(PipelinePlanTest, ItsSettingsAreThoseOfARun) {
  std::vector<std::string> set = {"dist.compression.scheme.linear8={}", "train.batch=64",
                                  "train.accumulation=4"};
  const LoadedConfig coded = LoadRunConfig("catdog_vgg", set).value();
  const auto plan = PlanPipeline(coded, facts_, {.hosts = 2}, kBatch).value();
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(plan->settings,
              ElementsAre("dist.compression={}", "dist.model_parallel.pipeline.stages=2",
                          "train.accumulation=8", "train.batch=64"));
  set.insert(set.end(), plan->settings.begin(), plan->settings.end());
  const auto staged = LoadRunConfig("catdog_vgg", set);
  EXPECT_TRUE(staged.ok()) << staged.status().message();
  EXPECT_THAT(DescribePipeline(*plan, 1), HasSubstr("(--set dist.compression={} --set "));
}

// Micro-batches of one image, at 1x1 in the last layers.
TEST(PipelinePlan, NothingIsSaidOfMicroBatchesThatAreTooSmallForBatchNorm) {
  const LoadedConfig loaded =
      LoadRunConfig("quickstart", std::vector<std::string>{"data.image_size=16"}).value();
  PlannerFacts facts = FactsOf(loaded);
  facts.set_image_size(16);
  const auto plan = PlanPipeline(loaded, facts, {.hosts = 2}, /*batch=*/2);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_FALSE(plan->has_value());
}

TEST_F(PipelinePlanTest, ASlowLinkIsSaid) {
  const double one_host = 1 / (kForward + kBackward);
  const auto slow = Plan(2, 1e-6).value();
  ASSERT_TRUE(slow.has_value());
  EXPECT_LT(slow->images_per_s, one_host);
  EXPECT_THAT(DescribePipeline(*slow, one_host),
              HasSubstr("it pays only where a network does not"));
}

TEST_F(PipelinePlanTest, NothingIsSaidOfWhatCannotBe) {
  EXPECT_FALSE(Plan(1, 0).value().has_value());
  EXPECT_FALSE(Plan(64, 0).value().has_value());  // fewer places to cut
  const LoadedConfig other = LoadRunConfig("lenet", {}).value();
  NetworkFacts network{.hosts = 2};
  EXPECT_FALSE(PlanPipeline(other, facts_, network, kBatch).value().has_value());
}

}  // namespace
}  // namespace ringtail
