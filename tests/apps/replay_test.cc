#include "apps/dogs_vs_cats/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/grad_cam/activation_map.h"
#include "core/random.h"
#include "core/storage/safetensors_writer.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

constexpr int64_t kBatch = 4, kSize = 16;
constexpr double kRate = 0.05, kMomentum = 0.9, kDecay = 0.01;

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() {
    std::vector<float> images(kBatch * 3 * kSize * kSize);
    Rng rng(RngKey(1).With(kTestStream));
    for (float& value : images) value = rng.Normal();
    WriteBatch(images, {0, 1, 1, 0});
  }
  void WriteBatch(const std::vector<float>& images, const std::vector<int32_t>& labels) {
    const std::vector<TensorView> batch = {
        ViewF32("images", {kBatch, 3, kSize, kSize}, images),
        ViewI32("labels", {static_cast<int64_t>(labels.size())}, labels)};
    ASSERT_TRUE(WriteSafetensors(folder_.File("batch"), batch, {}).ok());
  }
  Status Run(int steps, const std::string& weights, const std::string& out, bool grad_cam = false) {
    return Replay(TinyConfig({"optim.clip_norm=0", "optim.sgd.nesterov=false",
                              "optim.weight_decay=0.01", "optim.ema_decay=0"}),
                  {.weights = weights,
                   .batch = folder_.File("batch"),
                   .out = folder_.File(out),
                   .steps = steps,
                   .grad_cam = grad_cam});
  }
  std::map<std::string, std::vector<float>> Out(const std::string& name) {
    return ReadTensors(folder_.File(name));
  }
  TempDir folder_;
};

TEST_F(ReplayTest, OneStepIsTheFormulaOfSgd) {
  ASSERT_TRUE(Run(1, "", "out").ok());
  auto out = Out("out");
  EXPECT_EQ(out["loss"].size(), 1U);
  EXPECT_EQ(out["logits"].size(), kBatch * 2U);
  for (const std::string name : {"conv1.weight", "fc.weight", "fc.bias", "bn1.weight"}) {
    const double decay = name.find("weight") != std::string::npos && name[0] != 'b' ? kDecay : 0;
    const auto &init = out["init." + name], &grad = out["grad." + name];
    ASSERT_FALSE(init.empty()) << name;
    ASSERT_EQ(grad.size(), init.size());
    for (size_t i = 0; i < init.size(); ++i) {
      EXPECT_NEAR(out["param." + name][i], init[i] - kRate * (grad[i] + decay * init[i]), 1e-6)
          << name;
    }
  }
  EXPECT_NE(out["param.bn1.running_mean"], out["init.bn1.running_mean"]);
}

TEST_F(ReplayTest, TheSecondStepHasMomentum) {
  ASSERT_TRUE(Run(1, "", "one").ok());
  auto one = Out("one");
  // The state after one step as the weights of another run: its gradient is that of step two.
  std::vector<TensorView> weights;
  const SafetensorsFile file = SafetensorsFile::Read(folder_.File("one")).value();
  for (const auto& [name, entry] : file.entries()) {
    if (name.rfind("param.", 0) != 0) continue;
    weights.push_back(ViewF32(name.substr(6), entry.shape, file.F32(name, {}).value()));
  }
  ASSERT_TRUE(WriteSafetensors(folder_.File("weights"), weights, {}).ok());
  ASSERT_TRUE(Run(1, folder_.File("weights"), "next").ok());
  ASSERT_TRUE(Run(2, "", "two").ok());
  auto next = Out("next"), two = Out("two");
  EXPECT_EQ(next.count("init.fc.bias"), 0U);
  EXPECT_EQ(two["loss"][0], one["loss"][0]);
  EXPECT_EQ(two["loss"][1], next["loss"][0]);
  EXPECT_EQ(two["grad.fc.bias"], one["grad.fc.bias"]);
  for (size_t i = 0; i < two["param.fc.bias"].size(); ++i) {
    const double velocity = kMomentum * one["grad.fc.bias"][i] + next["grad.fc.bias"][i];
    EXPECT_NEAR(two["param.fc.bias"][i], one["param.fc.bias"][i] - kRate * velocity, 1e-6);
  }
}

// The map follows from the activations and gradients, and steps are what they are without it.
TEST_F(ReplayTest, WritesGradCamOfTheNetworkBeforeTheFirstStep) {
  ASSERT_TRUE(Run(1, "", "plain").ok());
  ASSERT_TRUE(Run(1, "", "out", /*grad_cam=*/true).ok());
  auto out = Out("out"), plain = Out("plain");
  for (const auto& [name, values] : plain) EXPECT_EQ(out[name], values) << name;
  const auto &activations = out["grad_cam.activations"], &gradients = out["grad_cam.gradients"];
  const auto& maps = out["grad_cam.maps"];
  constexpr size_t kMapChannels = 16;
  ASSERT_EQ(activations.size(), kMapChannels * maps.size());
  ASSERT_EQ(gradients.size(), activations.size());
  const auto plane = static_cast<int64_t>(maps.size()) / kBatch;
  const int64_t sample = static_cast<int64_t>(kMapChannels) * plane;
  for (int64_t n = 0; n < kBatch; ++n) {
    const ActivationMap map =
        GradCam(std::span(activations).subspan(n * sample, sample),
                std::span(gradients).subspan(n * sample, sample), kMapChannels, 1, plane);
    EXPECT_THAT(map.values, testing::ElementsAreArray(std::span(maps).subspan(n * plane, plane)));
  }
  EXPECT_THAT(maps, testing::Contains(1.0F));
  EXPECT_EQ(out["grad_cam.logits"].size(), kBatch * 2U);
}

TEST_F(ReplayTest, WrongFilesAreNamed) {
  EXPECT_EQ(Run(1, folder_.File("none"), "out").code(), StatusCode::kNotFound);
  const std::vector<float> few = {1, 2};
  ASSERT_TRUE(WriteSafetensors(folder_.File("few"),
                               std::vector<TensorView>{ViewF32("fc.bias", {2}, few)}, {})
                  .ok());
  EXPECT_THAT(Run(1, folder_.File("few"), "out").message(), testing::HasSubstr("few"));
  WriteBatch(std::vector<float>(kBatch * 3 * kSize * kSize), {0, 1, 2, 0});
  EXPECT_THAT(Run(1, "", "out").message(), testing::HasSubstr("label 2 is outside -1 .. 1"));
  WriteBatch(std::vector<float>(kBatch * 3 * kSize * kSize), {0, 1});
  EXPECT_THAT(Run(1, "", "out").message(), testing::HasSubstr("labels"));
}

}  // namespace
}  // namespace ringtail
