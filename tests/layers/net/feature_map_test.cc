// The last feature map of a net, and the gradient of a logit with respect to it: beside the numeric
// derivative of the rest of the net, which is a net of its own here that reads the map as its images.
#include "layers/net/feature_map.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/random.h"
#include "layers/net.pb.h"
#include "layers/net/net.h"
#include "tests/layers/test_algorithms.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr int64_t kBatch = 3, kSize = 12, kMap = 6;
constexpr int kClasses = 3;

NetConfig Parse(const std::string& text) {
  NetConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

// Images of 12 pixels to a map of 6 x 6 with so many channels.
std::string Head(int channels) {
  return R"(
    layer { name: "conv1" convolution { out_channels: 16 kernel: 3 padding: 1 bias: false } }
    layer { name: "bn1"   batch_norm {} }
    layer { name: "relu1" relu {} }
    layer { name: "conv2" convolution { out_channels: )" +
         std::to_string(channels) + R"( kernel: 3 stride: 2 padding: 1 } }
    layer { name: "map"   tanh {} })";
}

struct Tail {
  const char* name;
  const char* text;  // its first layer reads the one above, "map" or the images
};

constexpr Tail kPooled = {"pooled", R"(
  layer { name: "pool" global_average_pool {} }
  layer { name: "fc"   linear { out_features: 3 } }
  layer { name: "loss" softmax_cross_entropy { label_smoothing: 0.1 } })"};
constexpr Tail kHidden = {"hidden layers", R"(
  layer { name: "pool"  max_pool { kernel: 2 } }
  layer { name: "flat"  flatten {} }
  layer { name: "drop"  dropout { rate: 0.5 } }
  layer { name: "fc1"   linear { out_features: 19 } }
  layer { name: "bn2"   batch_norm {} }
  layer { name: "relu2" relu {} }
  layer { name: "fc2"   drop_connect { rate: 0.5 linear { out_features: 3 } } }
  layer { name: "loss"  softmax_cross_entropy {} })"};
// The map has two consumers; layers of every kind follow it.
constexpr Tail kDeep = {"more convolutions", R"(
  layer { name: "bn2"   batch_norm {} }
  layer { name: "relu2" relu {} }
  layer { name: "conv3" convolution { out_channels: CHANNELS kernel: 3 padding: 1 } }
  layer { name: "bn3"   batch_norm {} }
  layer { name: "sum"   input: "bn3" input: "MAP" add {} }
  layer { name: "relu3" relu {} }
  layer { name: "conv4" convolution { out_channels: 16 kernel: 3 padding: 1 } }
  layer { name: "bn4"   batch_norm {} }
  layer { name: "conv5" convolution { out_channels: 8 kernel: 1 } }
  layer { name: "pool"  global_average_pool {} }
  layer { name: "fc"    linear { out_features: 3 } }
  layer { name: "loss"  softmax_cross_entropy {} })"};

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string TailText(const Tail& tail, int channels, const std::string& map) {
  return Replaced(Replaced(tail.text, "CHANNELS", std::to_string(channels)), "MAP", map);
}

// Running statistics that differ from those of any batch, and weights that are not the same for
// every class.
std::unique_ptr<Model> MakeModel(const NetConfig& config, int64_t size) {
  auto model = Model::Create(config, size);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  (*model)->Initialize(5);
  for (const Parameter& p : (*model)->arena().buffers()) {
    const bool is_mean = p.spec.name.ends_with("running_mean");
    for (float& v : p.value()) v = is_mean ? 0.1F : 1.3F;
  }
  return *std::move(model);
}

std::unique_ptr<Net> MakeNet(Model* model, NetOptions options) {
  options.training = false;
  options.algorithms = TestAlgorithms();
  auto net = Net::Create(model, options);
  EXPECT_TRUE(net.ok()) << net.status().ToString();
  return *std::move(net);
}

struct Problem {
  std::vector<float> images;
  std::vector<int32_t> labels = {0, -1, 2};  // they have no part in it
  BatchView view() const { return {images.data(), labels}; }
};

Problem RandomBatch() {
  Rng rng(RngKey(3).With(kTestStream));
  Problem p;
  p.images.resize(kBatch * 3 * kSize * kSize);
  for (float& v : p.images) v = rng.Normal();
  return p;
}

// One class per image: not the same for all.
std::vector<float> OneHot() {
  std::vector<float> rows(kBatch * kClasses, 0.0F);
  for (int64_t n = 0; n < kBatch; ++n) rows[n * kClasses + (n + 1) % kClasses] = 1;
  return rows;
}

struct Case {
  Tail tail;
  int channels;
  bool defer;
};

class FeatureMapTest : public testing::TestWithParam<Case> {
 protected:
  FeatureMapTest()
      : model_(MakeModel(Parse(Head(GetParam().channels) +
                               TailText(GetParam().tail, GetParam().channels, "map")),
                         kSize)) {
    NetConfig tail = Parse(TailText(GetParam().tail, GetParam().channels, "images"));
    tail.set_input_channels(GetParam().channels);
    tail_ = MakeModel(tail, kMap);
    const auto copy = [&](const Parameter& p) {
      const Parameter* from = model_->arena().FindParameter(p.spec.name);
      ASSERT_NE(from, nullptr) << p.spec.name;
      std::copy(from->value().begin(), from->value().end(), p.value().begin());
    };
    for (const Parameter& p : tail_->arena().parameters()) copy(p);
  }

  // d logit[n, (n + 1) % classes] / d map, by central differences. The rest of every net here is
  // linear but for its ReLUs and pools: NaN where one of them changes sides within the distance.
  std::vector<double> NumericGradient(const std::vector<float>& map) const {
    const auto net = MakeNet(tail_.get(), {.batch = kBatch, .image_size = kMap});
    std::vector<float> changed = map;
    const std::vector<int32_t> labels(kBatch, 0);
    const auto per_image = static_cast<int64_t>(map.size()) / kBatch;
    const auto logits_at = [&](int64_t i, float by) {  // of all images at once
      for (int64_t n = 0; n < kBatch; ++n) {
        changed[n * per_image + i] = map[n * per_image + i] + by;
      }
      net->Forward({changed.data(), labels}, {.training = false});
      return std::vector<float>(net->logits().begin(), net->logits().end());
    };
    std::vector<double> gradient(map.size());
    for (int64_t i = 0; i < per_image; ++i) {
      constexpr float kH = 4e-3F;
      constexpr double kRounding = 1e-6;
      const std::vector<float> up = logits_at(i, kH), down = logits_at(i, -kH);
      const std::vector<float> middle = logits_at(i, 0);
      for (int64_t n = 0; n < kBatch; ++n) {
        const int64_t at = n * kClasses + (n + 1) % kClasses;
        const double a = up[at], b = down[at];
        const bool kink = std::abs(a + b - 2 * middle[at]) > kRounding;
        gradient[n * per_image + i] = kink ? NAN : (a - b) / (2 * kH);
      }
    }
    return gradient;
  }

  std::unique_ptr<Model> model_, tail_;
};

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum);
}

// Without the elements whose wanted value is NaN; most must be there.
double RelativeError(const std::vector<float>& got, const std::vector<double>& wanted) {
  EXPECT_EQ(got.size(), wanted.size());
  std::vector<double> error, known;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i])) continue;
    error.push_back(got[i] - wanted[i]);
    known.push_back(wanted[i]);
  }
  EXPECT_GT(std::ssize(known), std::ssize(wanted) * 2 / 3);
  EXPECT_GT(Norm(known), 0.01);  // the check must not pass on zeros
  return Norm(error) / Norm(known);
}

TEST_P(FeatureMapTest, GradientOfALogitMatchesNumericDifferences) {
  const auto net = MakeNet(
      model_.get(),
      {.batch = kBatch, .image_size = kSize, .defer = GetParam().defer, .feature_map = "map"});
  const auto plain = MakeNet(model_.get(), {.batch = kBatch, .image_size = kSize});
  const Problem batch = RandomBatch();
  plain->Forward(batch.view(), {.training = false});
  for (int round = 0; round < 2; ++round) {  // a second time in the same memory
    net->Forward(batch.view(), {.training = false});
    for (size_t i = 0; i < net->logits().size(); ++i) {
      EXPECT_NEAR(net->logits()[i], plain->logits()[i], 1e-5);
    }
    net->BackwardFromLogits(OneHot());
    const FeatureMap& map = net->feature_map();
    EXPECT_EQ(map.layer, "map");
    EXPECT_EQ(map.desc, (BlobDesc{kBatch, GetParam().channels, kMap, kMap}));
    EXPECT_LT(RelativeError(map.gradient, NumericGradient(map.values)), 3e-3);
  }
}

// The tail computes the same logits from the kept map, so the map is what the net has computed.
TEST_P(FeatureMapTest, KeepsWhatTheRestOfTheNetReads) {
  const auto net = MakeNet(
      model_.get(),
      {.batch = kBatch, .image_size = kSize, .defer = GetParam().defer, .feature_map = "map"});
  net->Forward(RandomBatch().view(), {.training = false});
  const auto rest = MakeNet(tail_.get(), {.batch = kBatch, .image_size = kMap});
  const std::vector<int32_t> labels(kBatch, 0);
  rest->Forward({net->feature_map().values.data(), labels}, {.training = false});
  for (size_t i = 0; i < net->logits().size(); ++i) {
    EXPECT_NEAR(net->logits()[i], rest->logits()[i], 1e-5);
  }
}

TEST_P(FeatureMapTest, Bfloat16IsWidened) {
  const Problem batch = RandomBatch();
  const auto gradient = [&] {
    const auto net =
        MakeNet(model_.get(), {.batch = kBatch, .image_size = kSize, .feature_map = "map"});
    net->Forward(batch.view(), {.training = false});
    net->BackwardFromLogits(OneHot());
    return net->feature_map().gradient;
  };
  const std::vector<float> exact = gradient();
  model_->set_blob_type(BlobType::kBf16);
  // Some ReLUs open in one and not in the other.
  EXPECT_LT(RelativeError(gradient(), {exact.begin(), exact.end()}), 0.3);
}

// Blocks of the machine's vectors (16, 17: with padding), and channels that may stay plain.
INSTANTIATE_TEST_SUITE_P(Nets, FeatureMapTest,
                         testing::Values(Case{kPooled, 16, true}, Case{kPooled, 17, true},
                                         Case{kPooled, 3, true}, Case{kHidden, 16, true},
                                         Case{kHidden, 17, true}, Case{kHidden, 3, true},
                                         Case{kDeep, 16, true}, Case{kDeep, 16, false},
                                         Case{kDeep, 17, true}, Case{kDeep, 17, false}));

// The layer that is found in images of `size` pixels, or the error.
std::string Found(const std::string& text, const std::string& layer = "", int64_t size = kSize) {
  const auto model = Model::Create(Parse(text), size);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  (*model)->Initialize(1);
  const auto net = Net::Create(model->get(), {.batch = 2,
                                              .image_size = size,
                                              .training = false,
                                              .feature_map = layer,
                                              .algorithms = TestAlgorithms()});
  return net.ok() ? (*net)->feature_map().layer : std::string(net.status().message());
}

constexpr char kStages[] = R"(
  layer { name: "conv"   convolution { out_channels: 8 kernel: 3 padding: 1 } }
  layer { name: "relu"   relu {} }
  layer { name: "pool"   max_pool { kernel: 2 } }
  layer { name: "layer1" residual_stage { blocks: 1 channels: 8 } }
  layer { name: "layer2" residual_stage { blocks: 2 channels: 16 stride: 2 } }
  layer { name: "avg"    global_average_pool {} }
  layer { name: "fc"     linear { out_features: 2 } }
  layer { name: "loss"   softmax_cross_entropy {} })";

TEST(FindFeatureMapTest, TheLastIsTheEndOfTheLastStage) {
  EXPECT_EQ(Found(kStages), "layer2.1.add");
  EXPECT_EQ(Found(kStages, "", 4), "layer1.0.add");  // layer2 has one pixel there
  EXPECT_EQ(Found(kStages, "layer1"), "layer1.0.add");
  EXPECT_EQ(Found(kStages, "conv"), "conv");
  EXPECT_EQ(Found(kStages, "layer2.0.conv1"), "layer2.0.conv1");
}

TEST(FindFeatureMapTest, PoolingIsLeftOut) {
  EXPECT_EQ(Found(R"(
    layer { name: "conv"  convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "bn"    batch_norm {} }
    layer { name: "relu"  relu {} }
    layer { name: "drop"  dropout {} }
    layer { name: "pool"  max_pool { kernel: 2 } }
    layer { name: "flat"  flatten {} }
    layer { name: "fc"    linear { out_features: 2 } }
    layer { name: "loss"  softmax_cross_entropy {} })"),
            "drop");
}

TEST(FindFeatureMapTest, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(Found(kStages, "layr2"), HasSubstr("'layr2' is no layer with an output of its own"));
  EXPECT_THAT(Found(kStages, "layer2.1.conv9"), HasSubstr("did you mean 'layer2.1.conv"));
  EXPECT_THAT(Found(kStages, "relu"), HasSubstr("'relu' is no layer with an output of its own"));
  EXPECT_THAT(Found(kStages, "fc"), HasSubstr("the output of layer 'fc' is 2x2; a feature map"));
  EXPECT_THAT(Found(R"(
    layer { name: "relu" relu {} }
    layer { name: "flat" flatten {} }
    layer { name: "fc"   linear { out_features: 2 } }
    layer { name: "loss" softmax_cross_entropy {} })"),
              HasSubstr("the network has no feature map"));
}

// Layers between the map and the logits need a gradient, and frozen ones have no place for it.
TEST(FindFeatureMapTest, FrozenLayersBehindItAreNamed) {
  const std::vector<std::string> frozen = {"all-but-head"};
  const auto model = Model::Create(Parse(Head(16) + kHidden.text), kSize, nullptr, "net",
                                   /*allocate=*/true, {.layers = frozen, .field = "train.freeze"});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const auto net = Net::Create(model->get(), {.batch = kBatch,
                                              .image_size = kSize,
                                              .training = false,
                                              .feature_map = "",
                                              .algorithms = TestAlgorithms()});
  EXPECT_EQ(net.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(net.status().message(), HasSubstr("layer 'fc1': it is frozen, and a gradient"));
}

}  // namespace
}  // namespace ringtail
