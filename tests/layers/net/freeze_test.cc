// Frozen layers: fixed in the arena, computed as in evaluation, without a backward.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/random.h"
#include "layers/net.pb.h"
#include "layers/net/net.h"
#include "tests/layers/test_algorithms.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kBatch = 4, kSize = 12;
constexpr int kClasses = 3;

// Batch norms before and after every kind of boundary, and a branch.
constexpr char kNet[] = R"(
  layer { name: "conv1"  convolution { out_channels: 16 kernel: 3 padding: 1 bias: false } }
  layer { name: "bn1"    batch_norm {} }
  layer { name: "relu1"  relu {} }
  layer { name: "pool1"  max_pool { kernel: 2 } }
  layer { name: "layer1" residual_stage { blocks: 1 channels: 16 } }
  layer { name: "layer2" residual_stage { blocks: 1 channels: 32 stride: 2 } }
  layer { name: "pool"   global_average_pool {} }
  layer { name: "fc"     linear { out_features: 3 } }
  layer { name: "loss"   softmax_cross_entropy {} })";

NetConfig Parse(const std::string& text) {
  NetConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

StatusOr<std::unique_ptr<Model>> Create(const std::vector<std::string>& frozen,
                                        const std::string& net = kNet) {
  return Model::Create(Parse(net), kSize, nullptr, "net", /*allocate=*/true,
                       {.layers = frozen, .field = "freeze"});
}

struct Batch {
  std::vector<float> images;
  std::vector<int32_t> labels;
  BatchView view() const { return {images.data(), labels}; }
};

Batch RandomBatch() {
  Rng rng(RngKey(3).With(kTestStream));
  Batch batch;
  batch.images.resize(kBatch * 3 * kSize * kSize);
  for (float& v : batch.images) v = rng.Normal();
  for (int64_t n = 0; n < kBatch; ++n) {
    batch.labels.push_back(static_cast<int32_t>(rng.Below(kClasses)));
  }
  return batch;
}

std::unique_ptr<Net> MakeNet(Model* model, bool training, int64_t batch = kBatch) {
  return Net::Create(model, {.batch = batch,
                             .image_size = kSize,
                             .training = training,
                             .algorithms = TestAlgorithms()})
      .value();
}

// A model with running statistics that differ from those of any batch.
std::unique_ptr<Model> MakeModel(const std::vector<std::string>& frozen) {
  auto model = Create(frozen).value();
  model->Initialize(5);
  for (const auto list : {model->arena().buffers(), model->arena().fixed()}) {
    for (const Parameter& p : list) {
      if (!p.is_buffer) continue;
      const bool is_mean = p.spec.name.ends_with("running_mean");
      for (float& v : p.value()) v = is_mean ? 0.3F : 1.7F;
    }
  }
  return model;
}

using Values = std::map<std::string, std::vector<float>>;

Values ValuesOf(const Model& model) {
  Values values;
  const ParameterArena& arena = model.arena();
  for (const auto list : {arena.parameters(), arena.buffers(), arena.fixed()}) {
    for (const Parameter& p : list) values[p.spec.name].assign(p.value().begin(), p.value().end());
  }
  return values;
}

std::vector<float> Logits(const Net& net) { return {net.logits().begin(), net.logits().end()}; }

void ExpectNear(const std::vector<float>& got, const std::vector<float>& wanted, float tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << i;
}

std::string ErrorOf(const std::vector<std::string>& frozen) {
  return Create(frozen).status().message();
}

TEST(FreezeTest, NamesThatMeanNothingAreRefused) {
  EXPECT_THAT(ErrorOf({"layer3"}), HasSubstr("'layer3' is no layer with weights (did you mean"));
  EXPECT_THAT(ErrorOf({"layer"}), HasSubstr("'layer' is no layer"));  // not a part of a name
  EXPECT_THAT(ErrorOf({"relu1"}), HasSubstr("'relu1' is no layer with weights"));
  EXPECT_THAT(ErrorOf({"conv1", "layer1"}),
              HasSubstr("'layer1.0.conv1' is frozen, but 'bn1' before it is not"));
  EXPECT_THAT(ErrorOf({"all-but-head", "fc"}), HasSubstr("nothing is left to train"));
}

TEST(FreezeTest, DepthCountsGroupsFromTheLoss) {
  const auto model = Create({}).value();
  std::map<std::string, int> depth;
  for (const Parameter& p : model->arena().parameters()) depth[p.spec.name] = p.spec.depth;
  EXPECT_EQ(depth["fc.weight"], 0);
  EXPECT_EQ(depth["fc.bias"], 0);
  EXPECT_EQ(depth["layer2.0.conv1.weight"], 1);
  EXPECT_EQ(depth["layer2.0.downsample.1.bias"], 1);
  EXPECT_EQ(depth["layer1.0.bn2.weight"], 2);
  EXPECT_EQ(depth["bn1.weight"], 3);
  EXPECT_EQ(depth["conv1.weight"], 3);
}

TEST(FreezeTest, TheArenaHasGradientsOfTheRestAlone) {
  const auto model = MakeModel({"all-but-head"});
  const ParameterArena& arena = model->arena();
  std::vector<std::string> names;
  for (const Parameter& p : arena.parameters()) names.push_back(p.spec.name);
  EXPECT_THAT(names, ElementsAre("fc.weight", "fc.bias"));
  EXPECT_TRUE(arena.buffers().empty());
  EXPECT_EQ(arena.num_parameters(), Create({}).value()->arena().num_parameters());
  EXPECT_EQ(arena.num_parameters() - arena.num_fixed(), 32 * kClasses + kClasses);
  // The start of a parameter does not depend on what is frozen.
  EXPECT_EQ(ValuesOf(*model), ValuesOf(*MakeModel({})));
}

TEST(FreezeTest, TheFrozenPartIsThatOfEvaluation) {
  const Batch batch = RandomBatch();
  const auto model = MakeModel({"all-but-head"});
  const auto net = MakeNet(model.get(), /*training=*/true);
  net->Forward(batch.view(), {});
  const auto plain = MakeModel({});
  const auto evaluation = MakeNet(plain.get(), /*training=*/false);
  evaluation->Forward(batch.view(), {.training = false});
  ExpectNear(Logits(*net), Logits(*evaluation), 2e-5F);
}

// Down to every boundary: what trains has the same gradient as if the frozen part were an input.
TEST(FreezeTest, GradientsOfTheRestMatchFiniteDifferences) {
  const Batch batch = RandomBatch();
  const std::vector<std::vector<std::string>> boundaries = {
      {"conv1"},
      {"conv1", "bn1"},
      {"conv1", "bn1", "layer1"},
      {"conv1", "bn1", "layer1", "layer2.0.conv1", "layer2.0.bn1", "layer2.0.downsample"},
      {"all-but-head"}};
  for (const auto& frozen : boundaries) {
    SCOPED_TRACE(frozen.back());
    const auto model = MakeModel(frozen);
    const auto net = MakeNet(model.get(), /*training=*/true);
    const Values before = ValuesOf(*model);
    net->Forward(batch.view(), {});
    std::vector<std::string> ready;
    net->Backward([&](const Parameter& p) { ready.push_back(p.spec.name); });
    ASSERT_EQ(ready.size(), model->arena().parameters().size());
    for (const Parameter& p : model->arena().parameters()) {
      size_t largest = 0;
      const std::vector<float> gradient(p.grad().begin(), p.grad().end());
      for (size_t i = 0; i < gradient.size(); ++i) {
        if (std::abs(gradient[i]) > std::abs(gradient[largest])) largest = i;
      }
      constexpr float kStep = 2e-3F;
      float& weight = p.value()[largest];
      const float start = weight;
      const auto loss = [&](float value) {
        weight = value;
        const double sum = net->Forward(batch.view(), {}).loss_sum;
        weight = start;
        return sum;
      };
      const double slope = (loss(start + kStep) - loss(start - kStep)) / (2.0 * kStep);
      EXPECT_NEAR(gradient[largest], slope, 0.03 * std::abs(slope) + 0.01) << p.spec.name;
    }
    const Values after = ValuesOf(*model);
    for (const Parameter& p : model->arena().fixed()) {
      EXPECT_EQ(after.at(p.spec.name), before.at(p.spec.name)) << p.spec.name;
    }
  }
}

TEST(FreezeTest, LessIsComputedAndKept) {
  // Activations of many layers, and of many images, need more than convolutions do for themselves.
  std::string deep = kNet;
  deep.replace(deep.find("blocks: 1"), 9, "blocks: 9");
  constexpr int64_t kLarge = 64;
  const auto whole = Create({}, deep).value(), frozen = Create({"all-but-head"}, deep).value();
  const auto whole_net = MakeNet(whole.get(), true, kLarge);
  const auto frozen_net = MakeNet(frozen.get(), true, kLarge);
  EXPECT_LT(frozen_net->memory_bytes(), whole_net->memory_bytes() / 2);
  double backward = 0;
  for (const LayerInfo& layer : frozen_net->layers()) backward += layer.backward_flops;
  EXPECT_EQ(backward, 2.0 * 32 * kClasses * kLarge);  // the gradient of fc.weight
}

}  // namespace
}  // namespace ringtail
