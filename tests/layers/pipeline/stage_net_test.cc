// Nets of stages, one after the other in one process, compute the bits of the whole net: loss, logits,
// gradients and running statistics, wherever the shipped networks may be cut.
#include "layers/pipeline/stage.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/run.pb.h"
#include "core/aligned_buffer.h"
#include "core/config/text_config.h"
#include "core/random.h"
#include "layers/net/cut_points.h"
#include "layers/net/graph.h"
#include "layers/net/net.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr int64_t kBatch = 2;
constexpr uint64_t kSeed = 7;

NetConfig ShippedNet(const std::string& name) {
  RunConfig config;
  EXPECT_TRUE(ReadTextConfig(std::string(RT_SOURCE_DIR) + "/configs/" + name + ".textproto",
                             &config, nullptr)
                  .ok());
  return config.net();
}

std::unique_ptr<Model> MakeModel(const NetConfig& config, int64_t image_size, BlobType type,
                                 const StageRequest& stage = {},
                                 const std::vector<std::string>& frozen = {},
                                 bool allocate = true) {
  auto model = Model::Create(config, image_size, nullptr, "net", allocate,
                             {.layers = frozen, .field = "freeze"}, {}, stage);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  (*model)->set_blob_type(type);
  if (allocate) (*model)->Initialize(kSeed);
  return *std::move(model);
}

NetOptions OptionsOf(int64_t image_size, bool training = true) {
  return {.batch = kBatch, .image_size = image_size, .training = training, .measure = false};
}

// One batch, through stages as processes would: what one sends is what the next receives.
class Stages {
 public:
  Stages(const NetConfig& config, int64_t image_size, BlobType type, std::vector<int> cuts,
         const std::vector<std::string>& frozen = {}, std::optional<BlobType> wire = {},
         bool training = true) {
    const int nodes = MakeModel(config, image_size, type, {}, {}, false)->graph().size();
    cuts.push_back(nodes - 1);
    int first = 0;
    for (const int last : cuts) {
      models.push_back(MakeModel(config, image_size, type,
                                 {.first = first, .last = last, .wire = wire}, frozen));
      nets.push_back(Net::Create(models.back().get(), OptionsOf(image_size, training)).value());
      first = last + 1;
    }
    boundaries.resize(nets.size());
    for (size_t i = 0; i + 1 < nets.size(); ++i) {
      const StageBlobs &from = nets[i]->boundaries(), &to = nets[i + 1]->boundaries();
      EXPECT_EQ(*from.sent, *to.received);
      EXPECT_EQ(from.gradient_received, to.gradient_sent);
      activations.emplace_back(from.sent->bytes());
      gradients.emplace_back(from.sent->bytes());
      boundaries[i].sent = activations[i].data();
      boundaries[i + 1].received = activations[i].data();
      boundaries[i].received_gradient = gradients[i].data();
      boundaries[i + 1].sent_gradient = gradients[i].data();
    }
  }

  LossResult Forward(const BatchView& batch, StepContext step) {
    LossResult loss;
    for (size_t i = 0; i < nets.size(); ++i) {
      step.boundary = &boundaries[i];
      loss = nets[i]->Forward({.images = i == 0 ? batch.images : nullptr, .labels = batch.labels},
                              step);
    }
    return loss;
  }
  void Backward() {
    for (size_t i = nets.size(); i-- > 0;) nets[i]->Backward();
  }

  std::vector<std::unique_ptr<Model>> models;
  std::vector<std::unique_ptr<Net>> nets;

 private:
  std::vector<StageBoundary> boundaries;
  std::vector<AlignedBuffer> activations, gradients;
};

struct Images {
  Images(int64_t image_size, int64_t channels)
      : buffer(kBatch * channels * image_size * image_size * 4) {
    uint64_t bits = 1;
    for (float& x : buffer.floats()) {
      bits = bits * 6364136223846793005U + 1442695040888963407U;
      x = static_cast<float>(bits >> 40) / static_cast<float>(1 << 23) - 1;
    }
  }
  BatchView View() const { return {.images = buffer.floats().data(), .labels = labels}; }

  AlignedBuffer buffer;
  std::vector<int32_t> labels = {1, 0};
};

// Every parameter of the stages is that of the whole; together they have all.
void ExpectSame(const Model& whole, const Stages& stages, const std::string& where) {
  size_t found = 0;
  for (const auto& stage : stages.models) {
    for (const Parameter& own : stage->arena().parameters()) {
      const Parameter* expected = whole.arena().FindParameter(own.spec.name);
      ASSERT_NE(expected, nullptr) << own.spec.name;
      EXPECT_EQ(own.spec.depth, expected->spec.depth);
      ++found;
      ASSERT_TRUE(std::ranges::equal(own.value(), expected->value())) << where << own.spec.name;
      ASSERT_TRUE(std::ranges::equal(own.grad(), expected->grad()))
          << where << "gradient of " << own.spec.name;
    }
    for (const Parameter& own : stage->arena().buffers()) {
      ASSERT_TRUE(std::ranges::equal(own.value(), whole.arena().FindBuffer(own.spec.name)->value()))
          << where << own.spec.name;
    }
    found += stage->arena().buffers().size();
  }
  EXPECT_EQ(found, whole.arena().parameters().size() + whole.arena().buffers().size());
}

std::vector<int> CutsOf(const NetConfig& config, int64_t image_size, BlobType type) {
  const auto model = MakeModel(config, image_size, type, {}, {}, false);
  NetOptions options = OptionsOf(image_size);
  options.plan_only = true;
  const auto net = Net::Create(model.get(), options).value();
  std::vector<int> cuts;
  for (const CutPoint& point : FindCutPoints(*model, *net)) {
    if (!point.parts_batch_norm) cuts.push_back(point.node);
  }
  return cuts;
}

struct Case {
  const char* name;
  int64_t image_size;
};

class StageNetTest : public testing::TestWithParam<std::tuple<Case, BlobType>> {};

// Two stages, and three and four if there are places for them.
TEST_P(StageNetTest, ComputesTheBitsOfTheWholeNet) {
  const auto& [shipped, type] = GetParam();
  const NetConfig config = ShippedNet(shipped.name);
  const std::vector<int> cuts = CutsOf(config, shipped.image_size, type);
  ASSERT_FALSE(cuts.empty());
  const Images images(shipped.image_size, 3);
  const auto whole = MakeModel(config, shipped.image_size, type);
  const auto net = Net::Create(whole.get(), OptionsOf(shipped.image_size)).value();
  const StepContext step{.seed = 3, .step = 5, .first_sample = 8};
  const LossResult expected = net->Forward(images.View(), step);
  net->Backward();

  std::vector<std::vector<int>> ways = {{cuts[cuts.size() / 2]}};
  if (cuts.size() >= 3) {
    ways.push_back({cuts.front(), cuts.back()});
    ways.push_back({cuts.front(), cuts[cuts.size() / 2], cuts.back()});
  }
  for (const std::vector<int>& way : ways) {
    Stages stages(config, shipped.image_size, type, way);
    const LossResult loss = stages.Forward(images.View(), step);
    stages.Backward();
    const std::string where =
        std::string(shipped.name) + " cut after node " + std::to_string(way[0]) + ": ";
    EXPECT_EQ(loss.loss_sum, expected.loss_sum) << where;
    EXPECT_EQ(loss.correct, expected.correct) << where;
    ASSERT_TRUE(std::ranges::equal(stages.nets.back()->logits(), net->logits())) << where;
    ExpectSame(*whole, stages, where);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shipped, StageNetTest,
    testing::Combine(testing::Values(Case{"lenet", 64}, Case{"catdog_vgg", 64}, Case{"alexnet", 96},
                                     Case{"vgg11_bn", 64}, Case{"resnet18", 64},
                                     Case{"resnet50", 64}, Case{"mobilenet_v2", 64},
                                     Case{"highway", 64}, Case{"dogs_vs_cats", 64},
                                     Case{"quickstart", 64}, Case{"small_images", 32}),
                     testing::Values(BlobType::kF32)),
    [](const auto& info) { return std::string(std::get<0>(info.param).name); });

INSTANTIATE_TEST_SUITE_P(
    ShippedInBf16, StageNetTest,
    testing::Combine(testing::Values(Case{"catdog_vgg", 64}, Case{"resnet18", 64},
                                     Case{"mobilenet_v2", 64}, Case{"dogs_vs_cats", 64}),
                     testing::Values(BlobType::kBf16)),
    [](const auto& info) { return std::string(std::get<0>(info.param).name); });

constexpr const char* kChain = R"(
    layer { name: "conv1" convolution { out_channels: 5 kernel: 3 padding: 1 } }
    layer { name: "relu1" relu {} }
    layer { name: "conv2" convolution { out_channels: 6 kernel: 3 padding: 1 } }
    layer { name: "drop"  dropout { rate: 0.3 } }
    layer { name: "fc"    linear { out_features: 2 } }
    layer { name: "loss"  softmax_cross_entropy {} })";

NetConfig Chain() {
  NetConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kChain, &config));
  return config;
}

// Nothing before the cut learns, so nothing is sent back; channels that fill no block cross as well.
TEST(StageTest, AFrozenStageGetsNoGradient) {
  const Images images(8, 3);
  const std::vector<std::string> frozen = {"conv1"};
  const auto whole = MakeModel(Chain(), 8, BlobType::kF32, {}, frozen);
  const auto net = Net::Create(whole.get(), OptionsOf(8)).value();
  Stages stages(Chain(), 8, BlobType::kF32, {0}, frozen);
  EXPECT_FALSE(stages.nets[0]->boundaries().gradient_received);
  EXPECT_EQ(net->Forward(images.View(), {}).loss_sum, stages.Forward(images.View(), {}).loss_sum);
  net->Backward();
  stages.Backward();
  ExpectSame(*whole, stages, "");
}

// Two micro-batches under way: what one pass needs beside what it keeps is the other's, too.
TEST(StageTest, NetsWithOneWorkMemoryTakeTurns) {
  const NetConfig config = ShippedNet("resnet18");
  const Images images(64, 3);
  const std::vector<int32_t> other_labels = {0, 0};
  const BatchView one = images.View(), two{.images = one.images, .labels = other_labels};
  const auto model = MakeModel(config, 64, BlobType::kF32);
  const std::span<float> grads = model->arena().grads();
  const auto alone = Net::Create(model.get(), OptionsOf(64)).value();
  std::vector<std::vector<float>> expected;
  for (const BatchView& batch : {one, two}) {
    alone->Forward(batch, {});
    alone->Backward();
    expected.emplace_back(grads.begin(), grads.end());
  }
  ASSERT_NE(expected[0], expected[1]);
  NetOptions shared = OptionsOf(64);
  shared.work = std::make_shared<WorkMemory>();
  const auto first = Net::Create(model.get(), shared).value();
  const auto second = Net::Create(model.get(), shared).value();
  EXPECT_LT(first->memory_bytes(), alone->memory_bytes());
  first->Forward(one, {});
  second->Forward(two, {});
  first->Backward();
  EXPECT_TRUE(std::ranges::equal(grads, expected[0]));
  second->Backward();
  EXPECT_TRUE(std::ranges::equal(grads, expected[1]));
}

TEST(StageTest, EvaluatesAsTheWholeNet) {
  const Images images(8, 3);
  const auto whole = MakeModel(Chain(), 8, BlobType::kF32);
  const auto net = Net::Create(whole.get(), OptionsOf(8, false)).value();
  Stages stages(Chain(), 8, BlobType::kF32, {1, 2}, {}, {}, false);
  net->Forward(images.View(), {.training = false});
  stages.Forward(images.View(), {.training = false});
  EXPECT_TRUE(std::ranges::equal(stages.nets.back()->logits(), net->logits()));
}

// Half the bytes; the loss is that of activations with 8 bits of mantissa.
TEST(StageTest, ABf16WireRoundsWhatCrosses) {
  const Images images(8, 3);
  const auto whole = MakeModel(Chain(), 8, BlobType::kF32);
  const auto net = Net::Create(whole.get(), OptionsOf(8)).value();
  Stages stages(Chain(), 8, BlobType::kF32, {0}, {}, BlobType::kBf16);
  EXPECT_EQ(stages.nets[0]->boundaries().sent->type, BlobType::kBf16);
  const double expected = net->Forward(images.View(), {}).loss_sum;
  const double rounded = stages.Forward(images.View(), {}).loss_sum;
  EXPECT_NE(rounded, expected);
  EXPECT_NEAR(rounded, expected, 0.01 * expected);
  net->Backward();
  stages.Backward();
  const std::span<float> exact = whole->arena().FindParameter("conv1.weight")->grad();
  const std::span<float> own = stages.models[0]->arena().FindParameter("conv1.weight")->grad();
  double error = 0, norm = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += (own[i] - exact[i]) * (own[i] - exact[i]);
    norm += exact[i] * exact[i];
  }
  EXPECT_GT(error, 0);
  EXPECT_LT(error, 1e-3 * norm);
}

TEST(StageTest, IsRefusedWhereMoreThanOneBlobCrosses) {
  NetConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    layer { name: "conv1" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "conv2" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "add"   input: "conv2" input: "conv1" add {} }
    layer { name: "fc"    linear { out_features: 2 } }
    layer { name: "loss"  softmax_cross_entropy {} })",
                                                            &config));
  const auto model =
      Model::Create(config, 8, nullptr, "net", true, {}, {}, {.first = 0, .last = 1});
  EXPECT_THAT(model.status().message(),
              HasSubstr("cannot be cut after layer 'conv2': more than one blob crosses"));
}

TEST(StageTest, FindsTheNanOfItsOwnLayers) {
  const Images images(8, 3);
  Stages stages(Chain(), 8, BlobType::kF32, {0});
  stages.models[1]->arena().FindParameter("conv2.weight")->value()[0] =
      std::numeric_limits<float>::quiet_NaN();
  stages.Forward(images.View(), {});
  stages.Backward();
  AlignedBuffer sent(stages.nets[0]->boundaries().sent->bytes());
  StageBoundary first{.sent = sent.data()}, second{.received = sent.data()};
  // The first stage's output is finite; its gradient is not, as it came from the second.
  EXPECT_THAT(stages.nets[0]->FindNonFinite(images.View(), {.boundary = &first}).message(),
              HasSubstr("the gradient of 'conv1"));
  EXPECT_THAT(
      stages.nets[1]
          ->FindNonFinite({.images = nullptr, .labels = images.labels}, {.boundary = &second})
          .message(),
      HasSubstr("parameter 'conv2.weight'"));
}

}  // namespace
}  // namespace ringtail
