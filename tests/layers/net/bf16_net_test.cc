// Nets whose activations are bf16, beside the same nets in f32.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/random.h"
#include "layers/element_types/bf16_unit.h"
#include "layers/net.pb.h"
#include "layers/net/net.h"
#include "layers/net/precision.h"
#include "tests/layers/test_algorithms.h"

namespace ringtail {
namespace {

constexpr int64_t kBatch = 8, kSize = 16, kClasses = 3;
constexpr uint64_t kWeights = 5;

// Convolutions that fill blocks, a block with a sum, batch norms that are deferred, layers that have no
// kernels for bf16 (dropout; a linear layer that makes the logits), and one that has them on some
// machines (linear).
constexpr char kNet[] = R"(
  layer { name: "conv1" convolution { out_channels: 16 kernel: 3 padding: 1 bias: false } }
  layer { name: "bn1"   batch_norm {} }
  layer { name: "relu1" relu {} }
  layer { name: "pool1" max_pool { kernel: 2 } }
  layer { name: "conv2" convolution { out_channels: 32 kernel: 1 bias: false } }
  layer { name: "bn2"   batch_norm {} }
  layer { name: "relu2" relu6 {} }
  layer { name: "conv3" convolution { kernel: 3 padding: 1 depthwise: true bias: false } }
  layer { name: "bn3"   batch_norm {} }
  layer { name: "conv4" convolution { out_channels: 32 kernel: 3 padding: 1 } }
  layer { name: "add"   input: "conv4" input: "relu2" add {} }
  layer { name: "relu4" relu {} }
  layer { name: "pool"  global_average_pool {} }
  layer { name: "flat"  flatten {} }
  layer { name: "drop"  dropout { rate: 0.25 } }
  layer { name: "fc1"   linear { out_features: 24 } }
  layer { name: "relu5" relu {} }
  layer { name: "fc"    linear { out_features: 3 } }
  layer { name: "loss"  softmax_cross_entropy {} })";

NetConfig Parse(const std::string& text) {
  NetConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
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
  for (int64_t n = 0; n < kBatch; ++n)
    batch.labels.push_back(static_cast<int32_t>(rng.Below(kClasses)));
  return batch;
}

std::unique_ptr<Model> MakeModel(BlobType type, const std::string& text = kNet) {
  auto model = Model::Create(Parse(text), kSize);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  (*model)->Initialize(kWeights);
  (*model)->set_blob_type(type);
  return *std::move(model);
}

std::unique_ptr<Net> MakeNet(Model* model, NetOptions options = {}) {
  options.batch = kBatch;
  options.image_size = kSize;
  options.algorithms = TestAlgorithms();
  auto net = Net::Create(model, options);
  EXPECT_TRUE(net.ok()) << net.status().ToString();
  return *std::move(net);
}

struct Step {
  double loss;
  std::vector<float> logits, gradients;
};

Step RunStep(Model* model, Net* net) {
  const Batch batch = RandomBatch();
  Step step;
  step.loss = net->Forward(batch.view(), {}).loss_sum;
  net->Backward();
  step.logits.assign(net->logits().begin(), net->logits().end());
  const std::span<const float> gradients = model->arena().grads();
  step.gradients.assign(gradients.begin(), gradients.end());
  return step;
}

Step RunOnce(BlobType type, const NetOptions& options = {}) {
  const auto model = MakeModel(type);
  const auto net = MakeNet(model.get(), options);
  return RunStep(model.get(), net.get());
}

// |a - b| / |b| and a b / (|a| |b|)
struct Difference {
  double relative, cosine;
};
Difference Compare(const std::vector<float>& a, const std::vector<float>& b) {
  double aa = 0, bb = 0, ab = 0, dd = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    aa += x * x, bb += y * y, ab += x * y, dd += (x - y) * (x - y);
  }
  return {std::sqrt(dd / bb), ab / std::sqrt(aa * bb)};
}

std::map<std::string, LayerInfo> InfosOf(const Net& net) {
  std::map<std::string, LayerInfo> infos;
  for (const LayerInfo& info : net.layers()) infos[info.name] = info;
  return infos;
}

TEST(Bf16NetTest, AStepIsThatOfF32WithinItsRoundings) {
  const Step f32 = RunOnce(BlobType::kF32), bf16 = RunOnce(BlobType::kBf16);
  EXPECT_NE(bf16.logits, f32.logits);
  EXPECT_LE(Compare(bf16.logits, f32.logits).relative, 0.03);
  EXPECT_NEAR(bf16.loss, f32.loss, 0.01 * f32.loss);
  // Where a ReLU is about 0 one has a gradient and the other does not: the direction is the same.
  EXPECT_GE(Compare(bf16.gradients, f32.gradients).cosine, 0.99);
}

TEST(Bf16NetTest, TheSameBitsAgainAndInAnotherNet) {
  const auto model = MakeModel(BlobType::kBf16);
  const auto net = MakeNet(model.get());
  const Step first = RunStep(model.get(), net.get()), second = RunStep(model.get(), net.get());
  const Step other = RunOnce(BlobType::kBf16);
  for (const Step* step : {&second, &other}) {
    EXPECT_EQ(first.logits, step->logits);
    EXPECT_EQ(first.gradients, step->gradients);
  }
}

// Recomputing writes the same bits again; deferring leaves out a rounding.
TEST(Bf16NetTest, RecomputingChangesNothingAndDeferringOnlyRoundings) {
  const NetOptions plain = {.recompute = false, .defer = false};
  const Step kept = RunOnce(BlobType::kBf16, plain);
  const Step recomputed = RunOnce(BlobType::kBf16, {.recompute = true, .defer = false});
  EXPECT_EQ(recomputed.gradients, kept.gradients);
  const Step deferred = RunOnce(BlobType::kBf16);
  EXPECT_GE(Compare(deferred.gradients, kept.gradients).cosine, 0.99);
}

TEST(Bf16NetTest, BlobsTakeHalfTheMemory) {
  const auto f32_model = MakeModel(BlobType::kF32), bf16_model = MakeModel(BlobType::kBf16);
  const auto infos = InfosOf(*MakeNet(f32_model.get()));
  const auto halved = InfosOf(*MakeNet(bf16_model.get()));
  EXPECT_EQ(infos.at("conv1").memory_bytes, 2 * halved.at("conv1").memory_bytes);
  EXPECT_EQ(infos.at("fc").memory_bytes, halved.at("fc").memory_bytes);
}

TEST(Bf16NetTest, SaysWhichBlobsAreWhatAndWhatGoesThroughF32) {
  const auto model = MakeModel(BlobType::kBf16);
  const auto net = MakeNet(model.get());
  const auto infos = InfosOf(*net);
  for (const char* bf16 : {"conv1", "bn1", "pool1", "conv3", "add", "pool", "drop", "fc1"}) {
    EXPECT_EQ(infos.at(bf16).dst.type, BlobType::kBf16) << bf16;
  }
  for (const char* f32 : {"fc", "loss"}) EXPECT_EQ(infos.at(f32).dst.type, BlobType::kF32) << f32;
  for (const auto& [name, info] : infos) {
    const bool has_no_kernels =
        name == "drop" || name == "fc" || (name == "fc1" && FastBf16Unit() == Bf16Unit::kNone);
    EXPECT_EQ(info.through_f32, has_no_kernels) << name;
  }
  EXPECT_THAT(DescribePrecision(net->layers()),
              testing::StartsWith("bfloat16 outputs of 13 of 15 layers"));
  const auto f32 = MakeModel(BlobType::kF32);
  EXPECT_EQ(DescribePrecision(MakeNet(f32.get())->layers()), "float32");
}

TEST(Bf16NetTest, ALayerMayHaveAPrecisionOfItsOwn) {
  std::string text = kNet;
  const auto insert = [&](const std::string& layer, const std::string& field) {
    const size_t at = text.find("name: \"" + layer + "\"");
    text.insert(at, field + " ");
  };
  insert("conv2", "precision: FLOAT32");
  insert("bn3", "precision: FLOAT32");
  insert("pool1", "precision: FLOAT32");
  const auto model = MakeModel(BlobType::kBf16, text);
  const auto net = MakeNet(model.get());
  const auto infos = InfosOf(*net);
  for (const char* f32 : {"conv2", "bn3", "pool1"}) {
    EXPECT_EQ(infos.at(f32).dst.type, BlobType::kF32) << f32;
  }
  EXPECT_EQ(infos.at("conv2").implementation.find("bf16"), std::string::npos);
  const Step mixed = RunStep(model.get(), net.get());
  EXPECT_GE(Compare(mixed.gradients, RunOnce(BlobType::kF32).gradients).cosine, 0.99);
}

TEST(Bf16NetTest, ACompositeHandsItsPrecisionDown) {
  const auto model = MakeModel(BlobType::kBf16, R"(
    layer { name: "conv" convolution { out_channels: 16 kernel: 3 padding: 1 } }
    layer { name: "stage" precision: FLOAT32 residual_stage { block: BASIC blocks: 1 channels: 16 } }
    layer { name: "twice" precision: FLOAT32 repeat { count: 2
      layer { name: "a" convolution { out_channels: 16 kernel: 1 } }
      layer { name: "b" precision: BFLOAT16 relu {} } } }
    layer { name: "pool" global_average_pool {} }
    layer { name: "fc" linear { out_features: 3 } }
    layer { name: "loss" softmax_cross_entropy {} })");
  const auto infos = InfosOf(*MakeNet(model.get()));
  EXPECT_EQ(infos.at("conv").dst.type, BlobType::kBf16);
  EXPECT_EQ(infos.at("stage.0.conv1").dst.type, BlobType::kF32);
  EXPECT_EQ(infos.at("twice.1.a").dst.type, BlobType::kF32);
  EXPECT_EQ(infos.at("pool").dst.type, BlobType::kBf16);
}

TEST(Bf16NetTest, FindsTheLayerThatMakesANan) {
  const auto model = MakeModel(BlobType::kBf16);
  const auto net = MakeNet(model.get());
  const Batch batch = RandomBatch();
  net->Forward(batch.view(), {});
  net->Backward();
  EXPECT_TRUE(net->FindNonFinite(batch.view(), {}).ok());
  // Finite in f32, beyond the largest number once it is squared and summed.
  const Parameter* weight = model->arena().FindParameter("conv4.weight");
  ASSERT_NE(weight, nullptr);
  std::fill(weight->value().begin(), weight->value().end(), std::numeric_limits<float>::max());
  EXPECT_FALSE(std::isfinite(net->Forward(batch.view(), {}).loss_sum));
  const Status found = net->FindNonFinite(batch.view(), {});
  EXPECT_THAT(found.message(), testing::HasSubstr("the output of layer 'conv4'"));
}

TEST(Bf16NetTest, EvaluatesAsItTrains) {
  const auto model = MakeModel(BlobType::kBf16);
  const auto train = MakeNet(model.get());
  const auto evaluate = MakeNet(model.get(), {.training = false});
  const Batch batch = RandomBatch();
  train->Forward(batch.view(), {.training = false});
  evaluate->Forward(batch.view(), {.training = false});
  const std::vector<float> one(train->logits().begin(), train->logits().end());
  const std::vector<float> two(evaluate->logits().begin(), evaluate->logits().end());
  EXPECT_LE(Compare(one, two).relative, 0.02);
}

}  // namespace
}  // namespace ringtail
