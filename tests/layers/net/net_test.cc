#include "layers/net/net.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <oneapi/dnnl/dnnl.h>
#include <cmath>
#include <cstdio>

#include "core/random.h"
#include "layers/net.pb.h"
#include "tests/layers/test_algorithms.h"

namespace ringtail {
namespace {

NetConfig Parse(const std::string& text) {
  NetConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

// A DAG in which one blob has three consumers, two branches meet, and activations fuse.
constexpr char kDag[] = R"(
  layer { name: "conv1" convolution { out_channels: 17 kernel: 3 padding: 1 } }
  layer { name: "relu1" relu {} }
  layer { name: "conv2" convolution { out_channels: 17 kernel: 3 padding: 1 } }
  layer { name: "relu2" relu {} }
  layer { name: "gate"  input: "conv2" input: "relu2" input: "relu1" highway_gate {} }
  layer { name: "cat"   input: "gate" input: "relu1" concat {} }
  layer { name: "down"  convolution { out_channels: 8 kernel: 3 stride: 2 } }
  layer { name: "relu3" relu {} }
  layer { name: "flat"  flatten {} }
  layer { name: "fc"    linear { out_features: 3 } }
  layer { name: "loss"  softmax_cross_entropy { label_smoothing: 0.1 } })";

struct Problem {
  std::vector<float> images;
  std::vector<int32_t> labels;
  BatchView view() const { return {images.data(), labels}; }
};

Problem RandomBatch(int64_t N, int64_t size, int classes) {
  Rng rng(RngKey(3).With(kTestStream));
  Problem p;
  p.images.resize(N * 3 * size * size);
  for (float& v : p.images) v = rng.Normal();
  for (int64_t n = 0; n < N; ++n) p.labels.push_back(static_cast<int32_t>(rng.Below(classes)));
  return p;
}

std::unique_ptr<Model> MakeModel(const std::string& text, int64_t size) {
  auto model = Model::Create(Parse(text), size);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  (*model)->Initialize(5);
  return *std::move(model);
}

std::unique_ptr<Net> MakeNet(Model* model, const NetOptions& options) {
  NetOptions with_algorithms = options;
  with_algorithms.algorithms = TestAlgorithms();
  auto net = Net::Create(model, with_algorithms);
  EXPECT_TRUE(net.ok()) << net.status().ToString();
  return *std::move(net);
}

TEST(NetTest, AModelForOtherImagesIsRefused) {
  const auto model = MakeModel(kDag, 9);
  const auto net =
      Net::Create(model.get(), {.batch = 4, .image_size = 13, .algorithms = TestAlgorithms()});
  ASSERT_FALSE(net.ok());
  EXPECT_THAT(net.status().message(), testing::HasSubstr("layer 'fc': 'fc.weight' is 3x"));
}

TEST(NetTest, GradientsOfADagMatchFiniteDifferences) {
  const auto model = MakeModel(kDag, 9);
  const auto net = MakeNet(model.get(), {.batch = 4, .image_size = 9});
  const Problem batch = RandomBatch(4, 9, 3);
  net->Forward(batch.view(), {});
  net->Backward();
  const std::vector<float> grads(model->arena().grads().begin(), model->arena().grads().end());
  int checked = 0;
  for (const Parameter& p : model->arena().parameters()) {
    Rng rng(RngKey(11).With(kTestStream).With(p.spec.name));
    for (int k = 0; k < 4; ++k) {
      const int64_t i = static_cast<int64_t>(rng.Below(p.elements));
      float& w = p.value()[i];
      const float before = w;
      constexpr float kH = 2e-3;  // small: few ReLUs change sign within it
      w = before + kH;
      const double up = net->Forward(batch.view(), {}).loss_sum;
      w = before - kH;
      const double down = net->Forward(batch.view(), {}).loss_sum;
      w = before;
      const double numeric = (up - down) / (2 * kH), analytic = grads[p.offset + i];
      EXPECT_NEAR(analytic, numeric, 0.02 * std::max(1.0, std::abs(numeric)))
          << p.spec.name << "[" << i << "]";
      checked += std::abs(numeric) > 0.05;
    }
  }
  EXPECT_GT(checked, 10);  // the check must not pass on zeros
}

TEST(NetTest, SameBitsTwiceAndInAnyMemory) {
  const auto model = MakeModel(kDag, 9);
  const Problem batch = RandomBatch(4, 9, 3);
  std::vector<float> first;
  double loss = 0;
  for (int round = 0; round < 2; ++round) {
    const auto net = MakeNet(model.get(), {.batch = 4, .image_size = 9});
    for (int step = 0; step < 2; ++step) {
      const LossResult result = net->Forward(batch.view(), {.step = 7});
      net->Backward();
      const std::vector<float> grads(model->arena().grads().begin(), model->arena().grads().end());
      if (first.empty()) {
        first = grads;
        loss = result.loss_sum;
      }
      EXPECT_EQ(grads, first);
      EXPECT_EQ(result.loss_sum, loss);
    }
  }
}

// A step computes, and makes nothing: oneDNN says whenever it creates a primitive.
TEST(NetTest, NoPrimitiveIsCreatedInAStep) {
  const auto model = MakeModel(kDag, 9);
  const Problem batch = RandomBatch(4, 9, 3);
  constexpr int kSayWhatIsCreated = 2;
  ASSERT_EQ(dnnl_set_verbose(kSayWhatIsCreated), dnnl_success);
  testing::internal::CaptureStdout();
  const auto net = MakeNet(model.get(), {.batch = 4, .image_size = 9});
  const std::string set_up = testing::internal::GetCapturedStdout();
  testing::internal::CaptureStdout();
  for (uint64_t step = 0; step < 2; ++step) {
    net->Forward(batch.view(), {.step = step});
    net->Backward();
  }
  std::fflush(stdout);
  const std::string steps = testing::internal::GetCapturedStdout();
  dnnl_set_verbose(0);
  EXPECT_THAT(set_up, testing::HasSubstr(",create"));
  EXPECT_THAT(steps, testing::HasSubstr(",exec"));
  EXPECT_THAT(steps, testing::Not(testing::HasSubstr(",create")));
}

TEST(NetTest, RecomputationSavesMemoryAndChangesNoBit) {
  constexpr char kText[] = R"(
    layer { name: "conv1" convolution { out_channels: 17 kernel: 3 padding: 1 } }
    layer { name: "bn1"   batch_norm {} }
    layer { name: "relu1" relu {} }
    layer { name: "stage" residual_stage { blocks: 3 channels: 24 } }
    layer { name: "pool"  global_average_pool {} }
    layer { name: "fc"    linear { out_features: 3 } }
    layer { name: "loss"  softmax_cross_entropy {} })";
  const Problem batch = RandomBatch(4, 9, 3);
  std::vector<std::vector<float>> grads, buffers;
  std::vector<int64_t> memory;
  for (const bool recompute : {false, true}) {
    const auto model = MakeModel(kText, 9);
    const auto net = MakeNet(model.get(), {.batch = 4, .image_size = 9, .recompute = recompute});
    for (int step = 0; step < 2; ++step) {
      net->Forward(batch.view(), {});
      net->Backward();
    }
    const auto copy = [](std::span<const float> v) {
      return std::vector<float>(v.begin(), v.end());
    };
    grads.push_back(copy(model->arena().grads()));
    buffers.push_back(copy(model->arena().buffer_values()));
    memory.push_back(net->memory_bytes());
  }
  EXPECT_EQ(grads[0], grads[1]);
  EXPECT_EQ(buffers[0], buffers[1]);
  EXPECT_LT(memory[1], memory[0]);
}

// Winograd after batch norm with ReLU, depthwise with ReLU6, and one whose consumer cannot defer
// it. By name: what is measured for the one net need not win for the other, and bits depend on it.
constexpr char kDeferring[] = R"(
  layer { name: "conv1" convolution { out_channels: 32 kernel: 3 padding: 1
                                      algorithm: WINOGRAD_4X4 } }
  layer { name: "bn1"   batch_norm {} }
  layer { name: "relu1" relu {} }
  layer { name: "conv2" convolution { out_channels: 32 kernel: 3 padding: 1
                                      algorithm: WINOGRAD_4X4 } }
  layer { name: "bn2"   batch_norm {} }
  layer { name: "relu2" relu6 {} }
  layer { name: "conv3" convolution { depthwise: true kernel: 3 padding: 1 stride: 2
                                      algorithm: DEPTHWISE } }
  layer { name: "bn3"   batch_norm {} }
  layer { name: "conv4" convolution { out_channels: 32 kernel: 3 padding: 1
                                      algorithm: WINOGRAD_2X2 } }
  layer { name: "bn4"   batch_norm {} }
  layer { name: "pool"  global_average_pool {} }
  layer { name: "fc"    linear { out_features: 3 } }
  layer { name: "loss"  softmax_cross_entropy {} })";

TEST(NetTest, DeferralSavesMemoryAndChangesNoBit) {
  const Problem batch = RandomBatch(4, 12, 3);
  for (const bool recompute : {false, true}) {
    std::vector<std::vector<float>> results;
    std::vector<int64_t> memory;
    for (const bool defer : {false, true}) {
      const auto model = MakeModel(kDeferring, 12);
      NetOptions options{.batch = 4, .image_size = 12, .recompute = recompute, .defer = defer};
      const auto net = MakeNet(model.get(), options);
      for (int step = 0; step < 2; ++step) {
        net->Forward(batch.view(), {});
        net->Backward();
      }
      const auto grads = model->arena().grads();
      const auto buffers = model->arena().buffer_values();
      std::vector<float> result(grads.begin(), grads.end());
      result.insert(result.end(), buffers.begin(), buffers.end());
      options.training = false;
      const auto evaluation = MakeNet(model.get(), options);
      evaluation->Forward(batch.view(), {.training = false});
      const auto logits = evaluation->logits();
      result.insert(result.end(), logits.begin(), logits.end());
      results.push_back(result);
      memory.push_back(net->memory_bytes());
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_LE(memory[1], memory[0]);
    EXPECT_TRUE(recompute || memory[1] < memory[0]);
  }
}

TEST(NetTest, FindNonFiniteLooksAtWhatIsDeferred) {
  const auto model = MakeModel(kDeferring, 12);
  const auto net = MakeNet(model.get(), {.batch = 4, .image_size = 12});
  const Problem batch = RandomBatch(4, 12, 3);
  net->Forward(batch.view(), {});
  net->Backward();
  EXPECT_TRUE(net->FindNonFinite(batch.view(), {}).ok());
  // Its input and its parameters are finite, its output is not, and conv2 maps to that in passing.
  for (float& w : model->arena().FindParameter("bn1.weight")->value()) w = 3e38F;
  EXPECT_THAT(net->FindNonFinite(batch.view(), {}).message(), testing::HasSubstr("layer 'bn1'"));
}

TEST(NetTest, EvaluationNeedsLessMemoryAndGivesTheSameLogits) {
  const auto model = MakeModel(kDag, 9);
  const auto training = MakeNet(model.get(), {.batch = 4, .image_size = 9});
  const auto evaluation = MakeNet(model.get(), {.batch = 4, .image_size = 9, .training = false});
  EXPECT_LT(evaluation->memory_bytes(), training->memory_bytes());
  const Problem batch = RandomBatch(4, 9, 3);
  training->Forward(batch.view(), {});
  evaluation->Forward(batch.view(), {.training = false});
  for (size_t i = 0; i < training->logits().size(); ++i) {
    EXPECT_NEAR(training->logits()[i], evaluation->logits()[i], 1e-5);
  }
}

TEST(NetTest, RowsWithoutASampleCountForNothing) {
  const auto model = MakeModel(kDag, 9);
  const auto net = MakeNet(model.get(), {.batch = 4, .image_size = 9});
  Problem batch = RandomBatch(4, 9, 3);
  batch.labels = {2, -1, 0, -1};
  const LossResult masked = net->Forward(batch.view(), {});
  net->Backward();
  const std::vector<float> grads(model->arena().grads().begin(), model->arena().grads().end());
  EXPECT_EQ(masked.count, 2);
  for (float& v : std::span(batch.images).subspan(3 * 81, 3 * 81)) v = 0;  // another image in row 1
  const LossResult other = net->Forward(batch.view(), {});
  net->Backward();
  EXPECT_EQ(other.loss_sum, masked.loss_sum);
  for (size_t i = 0; i < grads.size(); ++i) EXPECT_NEAR(model->arena().grads()[i], grads[i], 1e-5);
}

TEST(NetTest, GradientsAreReadyInArenaOrder) {
  const auto model = MakeModel(kDag, 9);
  const auto net = MakeNet(model.get(), {.batch = 4, .image_size = 9});
  const Problem batch = RandomBatch(4, 9, 3);
  std::vector<std::string> ready, expected;
  for (const Parameter& p : model->arena().parameters()) expected.push_back(p.spec.name);
  net->Forward(batch.view(), {});
  net->Backward([&](const Parameter& p) { ready.push_back(p.spec.name); });
  EXPECT_EQ(ready, expected);
  EXPECT_EQ(ready.front(), "fc.weight");
  EXPECT_EQ(ready.back(), "conv1.bias");
}

TEST(NetTest, FindNonFiniteNamesTheFirstLayer) {
  const auto model = MakeModel(kDag, 9);
  const auto net = MakeNet(model.get(), {.batch = 4, .image_size = 9});
  Problem batch = RandomBatch(4, 9, 3);
  net->Forward(batch.view(), {});
  net->Backward();
  EXPECT_TRUE(net->FindNonFinite(batch.view(), {}).ok());
  const auto message = [&] { return net->FindNonFinite(batch.view(), {}).message(); };
  model->arena().FindParameter("down.weight")->value()[3] = INFINITY;
  EXPECT_THAT(message(), testing::HasSubstr("'down.weight'"));
  model->arena().FindParameter("down.weight")->value()[3] = 0;
  for (float& w : model->arena().FindParameter("conv2.weight")->value()) w = 1e38F;
  EXPECT_THAT(message(), testing::HasSubstr("layer 'conv2'"));
  batch.images[5] = NAN;
  EXPECT_THAT(message(), testing::HasSubstr("image"));
}

TEST(NetTest, FusesActivationsAndReportsLayers) {
  const auto model = MakeModel(kDag, 9);
  const auto net = MakeNet(model.get(), {.batch = 4, .image_size = 9});
  std::vector<std::string> kinds;
  for (const LayerInfo& layer : net->layers()) kinds.push_back(layer.kind);
  // relu2 is not fused into conv2: the gate reads conv2's own output, too
  EXPECT_THAT(kinds, testing::ElementsAre("convolution+relu", "convolution", testing::_,
                                          "highway_gate", "concat", "convolution+relu", "flatten",
                                          "linear", "softmax_cross_entropy"));
  const LayerInfo& down = net->layers()[5];
  EXPECT_EQ(down.forward_flops, 2.0 * 4 * 8 * 16 * 34 * 9);
  EXPECT_EQ(down.backward_flops, 2 * down.forward_flops);
  EXPECT_EQ(net->layers()[0].backward_flops,
            net->layers()[0].forward_flops);  // images do not learn
  EXPECT_EQ(down.parameters, 8 * 34 * 9 + 8);
}

// A planned net reports the same numbers as one that can run, but has no memory: see `summary`.
TEST(NetTest, APlanIsThatOfTheNet) {
  const std::string dropping = R"(
      layer { name: "conv" convolution { out_channels: 32 kernel: 3 padding: 1 } }
      layer { name: "bn" batch_norm {} } layer { name: "relu" relu6 {} }
      layer { name: "pool" max_pool { kernel: 3 } } layer { name: "norm" lrn {} }
      layer { name: "drop" drop_connect { linear { out_features: 5 } } }
      layer { name: "loss" softmax_cross_entropy {} })";
  for (const std::string& text : {std::string(kDag), dropping}) {
    const auto model = MakeModel(text, 9);
    const auto net = MakeNet(model.get(), {.batch = 4, .image_size = 9, .measure = false});
    const auto shapes = Model::Create(Parse(text), 9, nullptr, "net", /*allocate=*/false).value();
    EXPECT_FALSE(shapes->is_allocated());
    const auto plan = MakeNet(shapes.get(), {.batch = 4, .image_size = 9, .plan_only = true});
    EXPECT_EQ(plan->memory_bytes(), net->memory_bytes());
    ASSERT_EQ(plan->layers().size(), net->layers().size());
    for (size_t i = 0; i < plan->layers().size(); ++i) {
      EXPECT_EQ(plan->layers()[i].memory_bytes, net->layers()[i].memory_bytes);
      EXPECT_EQ(plan->layers()[i].parameters, net->layers()[i].parameters);
      EXPECT_EQ(plan->layers()[i].forward_flops, net->layers()[i].forward_flops);
    }
  }
}

struct BadNet {
  const char* name;
  const char* text;
  const char* message;
};

class BadNetTest : public testing::TestWithParam<BadNet> {};

TEST_P(BadNetTest, IsRefusedWithTheReason) {
  const auto model = Model::Create(Parse(GetParam().text), 32);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(model.status().message(), testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Nets, BadNetTest,
    testing::Values(
        BadNet{"Empty", "", "no layers"},
        BadNet{"NoLoss", R"(layer { name: "a" linear { out_features: 2 } })",
               "end the net with softmax"},
        BadNet{"LossInTheMiddle", R"(layer { name: "a" softmax_cross_entropy {} }
                                     layer { name: "b" linear { out_features: 2 } })",
               "not the last"},
        BadNet{"UnknownInput", R"(layer { name: "a" input: "b" relu {} })", "input 'b'"},
        BadNet{"Unread",
               R"(layer { name: "a" flatten {} } layer { name: "b" input: "images" flatten {} }
                            layer { name: "c" linear { out_features: 2 } }
                            layer { name: "d" softmax_cross_entropy {} })",
               "no layer reads the output of layer 'a'"},
        BadNet{"SameName", R"(layer { name: "a" flatten {} } layer { name: "a" flatten {} })",
               "same name"},
        BadNet{"NoKind", R"(layer { name: "a" })", "no kind"},
        BadNet{"KernelTooLarge", R"(layer { name: "a" convolution { out_channels: 2 kernel: 40 } }
                                    layer { name: "b" flatten {} } layer { name: "c" softmax_cross_entropy {} })",
               "layer 'a': a kernel of 40x40"},
        BadNet{"Groups", R"(layer { name: "a" convolution { out_channels: 4 kernel: 1 groups: 2 } }
                            layer { name: "b" flatten {} } layer { name: "c" softmax_cross_entropy {} })",
               "groups is 2"},
        BadNet{"TooLarge",
               R"(layer { name: "a" convolution { out_channels: 2147483647 kernel: 31 } }
                              layer { name: "b" flatten {} } layer { name: "c" softmax_cross_entropy {} })",
               "layer 'a'"},
        BadNet{"TooManyLayers",
               R"(layer { name: "a" repeat { count: 10000 layer { name: "b" relu {} }
                                   layer { name: "c" relu {} } } } layer { name: "d" softmax_cross_entropy {} })",
               "more than 10000 layers"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ringtail
