// Inverted residual blocks (1x1, depthwise, 1x1, each with batch norm; and a sum) as whole nets:
// what convolutions do for their batch norms, whichever algorithms are chosen, changes nothing.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string>
#include <vector>

#include "core/parallel_for.h"
#include "core/random.h"
#include "layers/net.pb.h"
#include "layers/net/net.h"
#include "tests/layers/test_algorithms.h"

namespace ringtail {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kBatch = 4, kSize = 14;
constexpr int kClasses = 3;

// The first block adds its input; the second has a stride and a dst of one and a half blocks of 16.
constexpr char kBlocks[] = R"(
  layer { name: "stem" convolution { out_channels: 16 kernel: 3 padding: 1 bias: false
                                     algorithm: ONEDNN } }
  layer { name: "stem_bn" batch_norm {} }
  layer { name: "expand1" convolution { out_channels: 96 kernel: 1 bias: false } }
  layer { name: "expand1_clamped_bn" batch_norm {} }
  layer { name: "expand1_relu" relu6 {} }
  layer { name: "depthwise1" convolution { depthwise: true kernel: 3 padding: 1 bias: false } }
  layer { name: "depthwise1_clamped_bn" batch_norm {} }
  layer { name: "depthwise1_relu" relu6 {} }
  layer { name: "project1" convolution { out_channels: 16 kernel: 1 bias: false } }
  layer { name: "project1_bn" batch_norm {} }
  layer { name: "sum" input: "project1_bn" input: "stem_bn" add {} }
  layer { name: "expand2" convolution { out_channels: 96 kernel: 1 bias: false } }
  layer { name: "expand2_clamped_bn" batch_norm {} }
  layer { name: "expand2_relu" relu6 {} }
  layer { name: "depthwise2" convolution { depthwise: true kernel: 3 padding: 1 stride: 2
                                           bias: false } }
  layer { name: "depthwise2_clamped_bn" batch_norm {} }
  layer { name: "depthwise2_relu" relu6 {} }
  layer { name: "project2" convolution { out_channels: 24 kernel: 1 bias: false } }
  layer { name: "project2_bn" batch_norm {} }
  layer { name: "pool" global_average_pool {} }
  layer { name: "fc" linear { out_features: 3 } }
  layer { name: "loss" softmax_cross_entropy {} })";

// Most of what reaches a clamp is far from its bounds: where rounding decides whether a value is
// beyond one, gradients jump.
std::unique_ptr<Model> MakeModel() {
  NetConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kBlocks, &config));
  auto model = Model::Create(config, kSize);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  (*model)->Initialize(5);
  for (const Parameter& p : (*model)->arena().parameters()) {
    if (p.spec.name.find("_clamped_bn.") == std::string::npos) continue;
    const bool scale = p.spec.name.ends_with("weight");
    for (float& v : p.value()) v = scale ? 1.2F : 3;  // 0 and 6 are 2.5 standard deviations away
  }
  return *std::move(model);
}

struct Batch {
  Batch() {
    Rng rng(RngKey(3).With(kTestStream));
    for (float& v : images) v = rng.Normal();
    for (int32_t& label : labels) label = static_cast<int32_t>(rng.Below(kClasses));
  }
  Floats images = Floats(kBatch * 3 * kSize * kSize);
  std::vector<int32_t> labels = std::vector<int32_t>(kBatch);
};

// The results of two steps, by name.
struct Outcome {
  double loss = 0;
  std::map<std::string, Floats> tensors;
  std::map<std::string, std::string> implementations;  // by layer
};

Outcome Train(const NetOptions& options) {
  const auto model = MakeModel();
  auto net = Net::Create(model.get(), options);
  EXPECT_TRUE(net.ok()) << net.status().ToString();
  const Batch batch;
  Outcome outcome;
  for (uint64_t step = 0; step < 2; ++step) {
    outcome.loss = (*net)->Forward({batch.images.data(), batch.labels}, {.step = step}).loss_sum;
    for (float& g : model->arena().grads()) g = NAN;  // all of them are to be written
    (*net)->Backward();
  }
  for (const Parameter& p : model->arena().parameters()) {
    outcome.tensors[p.spec.name].assign(p.grad().begin(), p.grad().end());
  }
  for (const Parameter& p : model->arena().buffers()) {
    outcome.tensors[p.spec.name].assign(p.value().begin(), p.value().end());
  }
  for (const LayerInfo& layer : (*net)->layers()) {
    outcome.implementations[layer.name] = layer.implementation;
  }
  return outcome;
}

NetOptions Options(bool defer, bool recompute = true) {
  return {.batch = kBatch,
          .image_size = kSize,
          .recompute = recompute,
          .defer = defer,
          .algorithms = TestAlgorithms()};
}

// Measures what is not known yet, then chooses for every convolution and direction a candidate
// whose name starts so, the first of `starts` before the others; without one, the fastest.
void Choose(const std::vector<std::string>& starts) {
  for (const bool defer : {false, true}) Train(Options(defer));
  auto json = nlohmann::json::parse(TestAlgorithms()->Used());
  for (auto& choice : json["choices"]) {
    const auto& seconds = choice["seconds"];
    std::string chosen;
    for (const auto& [name, time] : seconds.items()) {
      if (chosen.empty() || time < seconds[chosen]) chosen = name;
    }
    for (const std::string& start : std::views::reverse(starts)) {
      for (const auto& [name, time] : seconds.items()) {
        if (name.starts_with(start)) chosen = name;
      }
    }
    if (!chosen.empty()) choice["algorithm"] = chosen;
  }
  ASSERT_TRUE(TestAlgorithms()->KeepAll(json.dump()).ok());
}

double Norm(const Floats& v) {
  double sum = 0;
  for (const float x : v) sum += static_cast<double>(x) * x;
  return std::sqrt(sum);
}

// Within 1e-5. What cancels to next to nothing (the mean of a normalized blob's map, the gradient
// of a bias that the next batch norm takes away) is measured by what stands beside it in its layer.
void ExpectAgree(const Outcome& actual, const Outcome& expected) {
  EXPECT_NEAR(actual.loss, expected.loss, 1e-5 * std::abs(expected.loss));
  ASSERT_EQ(actual.tensors.size(), expected.tensors.size());
  for (const auto& [name, tensor] : expected.tensors) {
    Floats difference = actual.tensors.at(name);
    for (size_t i = 0; i < tensor.size(); ++i) difference[i] -= tensor[i];
    const bool statistic = name.find(".running_") != std::string::npos;
    const std::string layer = name.substr(0, name.rfind('.'));
    const Floats& beside = expected.tensors.at(layer + (statistic ? ".running_var" : ".weight"));
    EXPECT_LE(Norm(difference), 1e-5 * std::max(Norm(tensor), Norm(beside))) << name;
  }
}

const std::vector<std::string> kMerged = {"pointwise", "depthwise"};
const std::vector<std::string> kSeparate = {"separate", "pointwise", "depthwise"};

TEST(InvertedResidualTest, DeferralAgreesWhateverIsChosen) {
  Choose({"separate"});
  const Outcome expected = Train(Options(/*defer=*/false));
  for (const auto& [name, tensor] : expected.tensors) {
    if (name.ends_with(".weight")) {
      EXPECT_GT(Norm(tensor), 1e-2) << name;  // the test must not pass on zeros
    }
  }
  for (const auto& names : {std::vector<std::string>{}, kMerged, kSeparate}) {
    Choose(names);
    for (const bool recompute : {false, true}) {
      ExpectAgree(Train(Options(/*defer=*/false, recompute)), expected);
      ExpectAgree(Train(Options(/*defer=*/true, recompute)), expected);
    }
  }
}

TEST(InvertedResidualTest, MergedAlgorithmsMapGradients) {
  Choose(kSeparate);
  const Outcome expected = Train(Options(/*defer=*/false));
  Choose(kMerged);
  const Outcome mapped = Train(Options(/*defer=*/true));
  for (const char* name : {"expand1", "project1", "expand2", "project2"}) {
    EXPECT_EQ(mapped.implementations.at(name), "pointwise / pointwise") << name;
  }
  for (const char* name : {"depthwise1", "depthwise2"}) {
    EXPECT_THAT(mapped.implementations.at(name),
                testing::MatchesRegex("depthwise:[^ ]* / depthwise:[^ ]*"));
  }
  ExpectAgree(mapped, expected);
  EXPECT_EQ(expected.implementations.at("expand1"), "pointwise / pointwise / pointwise");
}

TEST(InvertedResidualTest, SameBitsTwiceAndWithAnyNumberOfThreads) {
  const int before = NumComputeThreads();
  std::vector<Outcome> outcomes;
  for (const int threads : {1, 2, 2, 3}) {
    SetNumComputeThreads(threads);  // choices are of a number of threads
    Choose(kMerged);
    outcomes.push_back(Train(Options(/*defer=*/true)));
  }
  SetNumComputeThreads(before);
  EXPECT_EQ(outcomes[1].tensors, outcomes[2].tensors);
  EXPECT_EQ(outcomes[1].loss, outcomes[2].loss);
  for (const Outcome& outcome : outcomes) ExpectAgree(outcome, outcomes[0]);
}

// A net that was built to train may be run to evaluate, too: the moments are then not used.
TEST(InvertedResidualTest, EvaluationUsesRunningStatistics) {
  Choose(kMerged);
  const Batch batch;
  std::vector<Floats> logits;
  for (const bool training : {false, true}) {
    for (const bool defer : {false, true}) {
      const auto model = MakeModel();
      NetOptions options = Options(defer);
      options.training = training;
      auto net = Net::Create(model.get(), options);
      ASSERT_TRUE(net.ok());
      (*net)->Forward({batch.images.data(), batch.labels}, {.training = false});
      logits.emplace_back((*net)->logits().begin(), (*net)->logits().end());
    }
  }
  for (const Floats& other : logits) {
    for (size_t i = 0; i < other.size(); ++i) {
      EXPECT_NEAR(other[i], logits[0][i], 1e-5 * (1 + std::abs(logits[0][i])));
    }
  }
}

}  // namespace
}  // namespace ringtail
