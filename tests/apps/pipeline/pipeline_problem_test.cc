// A network as a problem of cutting: bytes, FLOPs and memory of what lies between cuts.
#include "apps/pipeline/pipeline_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "apps/config/run_config.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::ElementsAre;

constexpr int64_t kImages = 4;

struct Planned {
  LoadedConfig loaded;
  std::unique_ptr<Model> model;
  std::unique_ptr<Net> net;
};

Planned PlanTiny() {
  Planned planned{.loaded = TinyConfig({})};
  planned.model = CreateModel(planned.loaded, /*allocate=*/false).value();
  planned.net =
      Net::Create(planned.model.get(), {.batch = kImages, .image_size = 16, .plan_only = true})
          .value();
  return planned;
}

NetPipeline PipelineOf(const Planned& planned, int copies) {
  return MakeNetPipeline(*planned.model, *planned.net, FlopsAsSeconds(*planned.net),
                         {PipelineKind::kGpipe, 2, 2}, copies);
}

// conv1 and bn1 stay together, and conv2 with bn1, which it alone reads.
TEST(PipelineProblemTest, LayersAreWhatLiesBetweenCuts) {
  const Planned planned = PlanTiny();
  const NetPipeline pipeline = PipelineOf(planned, 0);
  std::vector<std::string> names;
  for (const PipelineLayer& layer : pipeline.problem.layers) names.push_back(layer.name);
  EXPECT_THAT(names, ElementsAre("conv2", "pool", "dropout", "fc", "loss"));
  EXPECT_THAT(pipeline.last_nodes, ElementsAre(2, 3, 4, 5, 6));
  EXPECT_EQ(pipeline.problem.layers[0].crossing.activation_bytes, kImages * 16 * 4 * 4 * 4);
  EXPECT_EQ(pipeline.problem.layers[0].crossing.gradient_bytes, kImages * 16 * 4 * 4 * 4);
  EXPECT_EQ(pipeline.problem.layers[1].crossing.activation_bytes, kImages * 16 * 4);
}

TEST(PipelineProblemTest, AddsUpToTheNetwork) {
  const Planned planned = PlanTiny();
  const NodeSeconds flops = FlopsAsSeconds(*planned.net);
  double forward = 0, backward = 0, of_nodes = 0;
  int64_t fixed = 0;
  for (const PipelineLayer& layer : PipelineOf(planned, 3).problem.layers) {
    forward += layer.forward_s;
    backward += layer.backward_s;
    fixed += layer.fixed_bytes;
  }
  for (const double f : flops.forward) of_nodes += f;
  EXPECT_DOUBLE_EQ(forward, of_nodes);
  EXPECT_GT(backward, forward);  // conv1 has no gradient of its images
  EXPECT_LT(backward, 2 * forward);
  // Weights, gradients and three copies; running statistics of 8 channels.
  EXPECT_EQ(fixed, 5 * 4 * planned.model->CountParameters() + 2 * 8 * 4);
}

TEST(PipelineProblemTest, CountsWhatEachOptimizerKeeps) {
  const auto copies = [](const std::vector<std::string>& overrides) {
    return CountWeightCopies(TinyConfig(overrides).config.optim(), 1).value();
  };
  EXPECT_EQ(copies({}), 2);  // momentum and averaged weights
  EXPECT_EQ(copies({"optim.ema_decay=0"}), 1);
  EXPECT_EQ(copies({"optim.adamw={}", "optim.ema_decay=0"}), 2);
  EXPECT_EQ(copies({"optim.adamw={}"}), 3);
  // The sum of gradients of several parts.
  EXPECT_EQ(CountWeightCopies(TinyConfig({}).config.optim(), 2).value(), 3);
}

}  // namespace
}  // namespace ringtail
