#include "dist/parameter_server/wire/push_coding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/random.h"
#include "tests/testing/parse_config.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

// Three parameters, of which a server has the first and the last.
class PushCodingTest : public testing::Test {
 protected:
  PushCodingTest()
      : model_(ParameterArena::Create(
                   {{.name = "fc.weight", .shape = {20, 30}, .kind = ParameterKind::kLinearWeight},
                    {.name = "fc.bias", .shape = {20}},
                    {.name = "conv.weight",
                     .shape = {8, 4, 3, 3},
                     .kind = ParameterKind::kConvolutionWeight}},
                   {})
                   .value()) {}

  StatusOr<std::vector<CompressedLayer>> Layers(const std::string& scheme) const {
    return PushLayers(ParseConfig<CompressionConfig>("min_elements: 100 scheme { " + scheme + " }"),
                      model_->parameters(), 8);
  }
  PushCoding Coding(std::span<const CompressedLayer> layers) const {
    const auto parameters = model_->parameters();
    return {layers,
            parameters,
            {{.parameter = 0, .model_offset = parameters[0].offset, .own_offset = 0},
             {.parameter = 2, .model_offset = parameters[2].offset, .own_offset = 608}},
            7};
  }
  static constexpr size_t kOwn = 608 + 288;

  std::vector<float> Gradient(uint64_t seed) const {
    Rng rng{RngKey(seed)};
    std::vector<float> gradient(model_->values().size());
    for (float& value : gradient) value = rng.Normal();
    return gradient;
  }
  // What the server has of it.
  std::vector<float> Own(std::span<const float> model) const {
    std::vector<float> own(kOwn);
    std::copy_n(model.begin(), 600, own.begin());
    std::copy_n(model.begin() + model_->parameters()[2].offset, 288, own.begin() + 608);
    return own;
  }

  const std::unique_ptr<ParameterArena> model_;
};

TEST_F(PushCodingTest, LayersThatWaitAreRefused) {
  const auto layers =
      PushLayers(ParseConfig<CompressionConfig>(
                     "min_elements: 1 rule { scheme { linear8 {} } every_steps: 2 }"),
                 model_->parameters(), 8);
  EXPECT_THAT(layers.status().message(), HasSubstr("leave every_steps out"));
}

TEST_F(PushCodingTest, WhatIsLeftOutIsSentLater) {
  for (const char* scheme : {"two_bit {}", "top_k {}", "one_bit {}"}) {
    const auto layers = Layers(scheme).value();
    const LayerMemories memories(model_.get(), layers, {.rank = 1});
    const PushCoding coding = Coding(layers);
    EXPECT_LT(coding.bytes(), kOwn * sizeof(float)) << scheme;
    std::vector<std::byte> payload(coding.bytes());
    std::vector<float> sent(kOwn), offered(kOwn), decoded(kOwn);
    for (int64_t push = 0; push < 5; ++push) {
      const std::vector<float> gradient = Gradient(push);
      coding.Encode(1, push, gradient, memories, payload);
      ASSERT_TRUE(coding.Decode(1, push, payload, decoded).ok()) << scheme;
      const std::vector<float> own = Own(gradient);
      for (size_t i = 0; i < kOwn; ++i) {
        sent[i] += decoded[i];
        offered[i] += own[i];
      }
    }
    for (size_t i = 0; i < kOwn; ++i) {
      if (i >= 600 && i < 608) continue;  // a gap
      const float left = i < 600 ? memories.residual(0)[i] : memories.residual(2)[i - 608];
      EXPECT_NEAR(sent[i] + left, offered[i], 1e-4) << scheme << " " << i;
    }
  }
}

// Small parameters, and all without a scheme, keep their bits.
TEST_F(PushCodingTest, DenseGradientsKeepTheirBits) {
  const auto layers = Layers("dense {}").value();
  const LayerMemories memories(model_.get(), layers, {});
  const PushCoding coding = Coding(layers);
  std::vector<std::byte> payload(coding.bytes());
  std::vector<float> decoded(kOwn);
  const std::vector<float> gradient = Gradient(3);
  coding.Encode(0, 0, gradient, memories, payload);
  ASSERT_TRUE(coding.Decode(0, 0, payload, decoded).ok());
  EXPECT_EQ(decoded, Own(gradient));
}

TEST_F(PushCodingTest, WhatIsNoPayloadIsRefused) {
  const auto layers = Layers("top_k {}").value();
  const PushCoding coding = Coding(layers);
  std::vector<float> decoded(kOwn);
  EXPECT_FALSE(coding.Decode(0, 0, std::vector<std::byte>(coding.bytes() - 8), decoded).ok());
  EXPECT_FALSE(
      coding.Decode(0, 0, std::vector<std::byte>(coding.bytes(), std::byte{255}), decoded).ok());
}

TEST_F(PushCodingTest, SchemesThatNeedAllRanksAreRefused) {
  for (const char* scheme : {"power_sgd {}", "random_k {}", "dgc {}"}) {
    EXPECT_THAT(Layers(scheme).status().message(), HasSubstr("not for pushes to servers"))
        << scheme;
  }
}

}  // namespace
}  // namespace ringtail
