// Exported networks, read by OpenCV's dnn: the same probabilities as the network itself, for all
// shipped networks and for every layer that they lack.
#include "apps/export/onnx_export.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <opencv2/dnn.hpp>
#include <random>

#include "apps/config/run_config.h"
#include "apps/export/onnx.pb.h"
#include "apps/trainer/evaluation.h"
#include "data/render.h"
#include "layers/net/net.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr int64_t kBatch = 3;

// Weights as they start; statistics as if trained.
TrainedModel Random(LoadedConfig loaded) {
  TrainedModel trained;
  trained.loaded = std::move(loaded);
  trained.model = CreateModel(trained.loaded).value();
  trained.model->Initialize(5);
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> near_one(0.5F, 1.5F);
  for (const Parameter& buffer : trained.model->arena().buffers()) {
    const bool variance = buffer.spec.name.ends_with("running_var");
    for (float& value : buffer.value()) value = near_one(generator) - (variance ? 0.0F : 1.0F);
  }
  for (int64_t k = 0; k < trained.model->num_classes(); ++k) {
    trained.class_names.push_back(fmt::format("class \"{}\"", k));
  }
  return trained;
}

// (kBatch, 3, size, size), whole numbers of 0 .. 255
std::vector<float> RandomPixels(int64_t size) {
  std::mt19937 generator(11);
  std::uniform_int_distribution<int> pixel(0, 255);
  std::vector<float> pixels(kBatch * 3 * size * size);
  for (float& value : pixels) value = static_cast<float>(pixel(generator));
  return pixels;
}

// (kBatch, classes), by the network itself
std::vector<double> Expected(const TrainedModel& trained, int64_t size,
                             const std::vector<float>& pixels) {
  auto net = Net::Create(trained.model.get(),
                         {.batch = kBatch, .image_size = size, .training = false, .measure = false})
                 .value();
  const Normalization normalization = NormalizationFromConfig(trained.loaded.config.data());
  AlignedBuffer images(pixels.size() * sizeof(float));
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t c = i / (size * size) % 3;
    images.floats()[i] = pixels[i] * normalization.scale[c] + normalization.offset[c];
  }
  const std::vector<int32_t> labels(kBatch, 0);
  net->Forward({images.floats().data(), labels}, {.training = false});
  std::vector<double> probabilities;
  const int64_t classes = trained.model->num_classes();
  for (int64_t i = 0; i < kBatch; ++i) {
    const auto row = Softmax(net->logits().subspan(i * classes, classes));
    probabilities.insert(probabilities.end(), row.begin(), row.end());
  }
  return probabilities;
}

// The largest difference, over batches of 1 and of all.
double LargestDifference(const TrainedModel& trained, int64_t size) {
  const std::string file = OnnxModel(trained, size).value();
  const std::vector<float> pixels = RandomPixels(size);
  const std::vector<double> expected = Expected(trained, size, pixels);
  const int64_t classes = trained.model->num_classes();
  double largest = 0;
  for (const int64_t batch : {int64_t{1}, kBatch}) {
    cv::dnn::Net net = cv::dnn::readNetFromONNX(file.data(), file.size());
    const std::vector<int> shape = {static_cast<int>(batch), 3, static_cast<int>(size),
                                    static_cast<int>(size)};
    net.setInput(cv::Mat(shape, CV_32F, const_cast<float*>(pixels.data())));
    const cv::Mat result = net.forward();
    EXPECT_EQ(result.total(), static_cast<size_t>(batch * classes));
    for (int64_t i = 0; i < batch * classes; ++i) {
      largest = std::max(largest, std::abs(result.ptr<float>()[i] - expected[i]));
    }
  }
  return largest;
}

struct ShippedNet {
  std::string name;
  int64_t size;
  std::vector<std::string> overrides;  // that make it small
};

class ShippedNetTest : public testing::TestWithParam<ShippedNet> {};

TEST_P(ShippedNetTest, HasTheSameProbabilitiesInOpenCv) {
  std::vector<std::string> overrides = GetParam().overrides;
  overrides.push_back(fmt::format("data.image_size={}", GetParam().size));
  overrides.push_back("train.phase=");
  const TrainedModel trained =
      Random(LoadRunConfig(std::string(RT_SOURCE_DIR "/configs/") + GetParam().name + ".textproto",
                           overrides)
                 .value());
  EXPECT_LE(LargestDifference(trained, GetParam().size), 1e-5);
}

const std::vector<std::string> kSmallHead = {"net.layer[classifier.1].linear.out_features=32",
                                             "net.layer[classifier.4].linear.out_features=32"};
const std::vector<std::string> kSmallVggHead = {"net.layer[classifier.0].linear.out_features=32",
                                                "net.layer[classifier.3].linear.out_features=32"};

INSTANTIATE_TEST_SUITE_P(Configs, ShippedNetTest,
                         testing::ValuesIn(std::vector<ShippedNet>{{"dogs_vs_cats", 64, {}},
                                                                   {"quickstart", 33, {}},
                                                                   {"lenet", 48, {}},
                                                                   {"catdog_vgg", 64, {}},
                                                                   {"alexnet", 96, kSmallHead},
                                                                   {"vgg11_bn", 64, kSmallVggHead},
                                                                   {"resnet18", 65, {}},
                                                                   {"resnet50", 32, {}},
                                                                   {"mobilenet_v2", 64, {}},
                                                                   {"highway", 40, {}},
                                                                   {"small_images", 32, {}}}),
                         [](const auto& shipped) { return shipped.param.name; });

TEST(OnnxExportTest, EveryShippedNetworkIsTested) {
  int64_t configs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RT_SOURCE_DIR "/configs")) {
    configs += entry.path().extension() == ".textproto" ? 1 : 0;
  }
  EXPECT_EQ(configs, 11);
}

TrainedModel Custom(const std::string& layers) {
  return Random(
      ParseRunConfig("data { image_size: 20 mean: [10, 20, 30] std: [2, 40, 60] } net { " + layers +
                         " layer { name: \"loss\" softmax_cross_entropy {} } }",
                     "custom", {})
          .value());
}

TEST(OnnxExportTest, LayersThatNoShippedNetworkHas) {
  const TrainedModel trained = Custom(R"(
      layer { name: "c" convolution { out_channels: 8 kernel: [3, 5] stride: [2, 1] padding: [1, 2, 0, 1] bias: false } }
      layer { name: "leaky" leaky_relu { slope: 0.2 } }
      layer { name: "lrn" lrn { size: 3 alpha: 0.5 beta: 0.6 k: 2 } }
      layer { name: "dilated" convolution { out_channels: 8 kernel: 3 padding: 2 dilation: 2 groups: 2 } }
      layer { name: "tanh" tanh {} }
      layer { name: "product" input: "lrn" input: "tanh" multiply {} }
      layer { name: "sum" input: "lrn" input: "tanh" input: "product" add {} }
      layer { name: "pool" average_pool { kernel: 3 stride: 2 padding: 1 count_padding: true } }
      layer { name: "ceil" input: "sum" average_pool { kernel: 2 rounding: CEIL count_padding: false } }
      layer { name: "max" input: "sum" max_pool { kernel: 2 rounding: CEIL } }
      layer { name: "both" input: "ceil" input: "max" concat {} }
      layer { name: "own" input: "both" adaptive_average_pool { output: 4 } }
      layer { name: "gap" input: "pool" global_average_pool {} }
      layer { name: "one" input: "own" convolution { out_channels: 8 kernel: 4 } }
      layer { name: "gapped" input: "gap" convolution { out_channels: 8 kernel: 1 } }
      layer { name: "joined" input: "one" input: "gapped" add {} }
      layer { name: "h1" drop_connect { linear { out_features: 16 } rate: 0.25 } }
      layer { name: "s" sigmoid {} }
      layer { name: "d" dropout {} }
      layer { name: "fc" linear { out_features: 7 bias: false } })");
  EXPECT_LE(LargestDifference(trained, 20), 1e-5);
}

TEST(OnnxExportTest, SaysWhatItIs) {
  const TrainedModel trained = Custom(R"(layer { name: "fc" linear { out_features: 2 } })");
  onnx::ModelProto file;
  ASSERT_TRUE(file.ParseFromString(OnnxModel(trained, 20).value()));
  std::map<std::string, std::string> metadata;
  for (const auto& entry : file.metadata_props()) metadata[entry.key()] = entry.value();
  EXPECT_EQ(metadata["class_names"], R"(["class \"0\"","class \"1\""])");
  EXPECT_EQ(metadata["image_size"], "20");
  EXPECT_EQ(metadata["mean"], "10 20 30");
  EXPECT_EQ(metadata["std"], "2 40 60");
  EXPECT_EQ(file.graph().input(0).type().tensor_type().shape().dim(0).dim_param(), "N");
  EXPECT_EQ(file.graph().initializer(2).name(), "fc.weight");
}

TEST(OnnxExportTest, UsageQuotesNames) {
  DataConfig data;
  const std::string usage = OnnxUsage("my \"net\".onnx", data, 112, {"ant", "\"b\\e\"e"});
  EXPECT_THAT(usage, HasSubstr(R"(readNetFromONNX("my \"net\".onnx"))"));
  EXPECT_THAT(usage, HasSubstr("scale = 128 / min"));  // 112 / 0.875
  EXPECT_THAT(usage, HasSubstr(R"(print(dict(zip(["ant", "\"b\\e\"e"], net.forward()[0]))))"));
  EXPECT_THAT(OnnxUsage("a", data, 112, std::vector<std::string>(21, "x")),
              HasSubstr("class_names in the file's metadata"));
}

TEST(OnnxExportTest, RefusesWhatItCannotWrite) {
  const TrainedModel grey = Random(
      ParseRunConfig("net { input_channels: 1 layer { name: \"fc\" linear { out_features: 2 } } "
                     "layer { name: \"loss\" softmax_cross_entropy {} } }",
                     "grey", {})
          .value());
  EXPECT_THAT(OnnxModel(grey, 128).status().message(), HasSubstr("1 channels"));
  const TrainedModel ceil = Custom(R"(
      layer { name: "up" average_pool { kernel: 3 stride: 2 rounding: CEIL } }
      layer { name: "fc" linear { out_features: 2 } })");
  EXPECT_THAT(OnnxModel(ceil, 20).status().message(), HasSubstr("layer 'up'"));
  const TrainedModel fixed = Custom(R"(layer { name: "fc" linear { out_features: 2 } })");
  EXPECT_THAT(OnnxModel(fixed, 24).status().message(), HasSubstr("another image size than 24"));
}

}  // namespace
}  // namespace ringtail
