#include "apps/trainer/checkpoint/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "apps/trainer/checkpoint/progress_metadata.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

TrainingState State(const LoadedConfig& loaded, uint64_t seed) {
  return TrainingState::Create(CreateModel(loaded).value(), loaded.config.optim(), seed).value();
}

void FillEverything(TrainingState* state) {
  float value = 0;
  const auto fill = [&](std::span<float> values) {
    for (float& v : values) v = value += 0.25F;
  };
  for (const Parameter& p : state->model()->arena().parameters()) fill(p.value());
  for (const Parameter& p : state->model()->arena().buffers()) fill(p.value());
  for (const auto& block : state->optimizer()->state()) fill(block.values);
  fill(state->average()->values());
  fill(state->average()->buffers());
  state->progress = {.step = 7,
                     .evaluated_step = 5,
                     .best_step = 5,
                     .best_accuracy = 0.1 + 0.2,  // needs all 17 digits
                     .skipped_steps = 3,
                     .skipped_in_a_row = 2};
}

TEST(TrainingStateTest, AFileBringsEverythingBack) {
  const TempDir folder;
  const LoadedConfig loaded = TinyConfig({"optim.adam={}"});
  TrainingState saved = State(loaded, 1), restored = State(loaded, 2);
  FillEverything(&saved);
  ASSERT_TRUE(WriteSafetensors(folder.File("x"), saved.Tensors(), saved.Metadata()).ok());
  const SafetensorsFile file = SafetensorsFile::Read(folder.File("x")).value();
  EXPECT_TRUE(file.Has("conv1.weight"));
  EXPECT_TRUE(file.Has("average.bn1.running_var"));
  ASSERT_TRUE(restored.Restore(file).ok());
  const auto wanted = saved.Tensors(), got = restored.Tensors();
  ASSERT_EQ(wanted.size(), got.size());
  // conv1, conv2, fc: two each; bn1: two and two statistics. Adam has two blocks, the average one.
  EXPECT_EQ(wanted.size(), 10U + 2 * 8U + 10U);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(wanted[i].name, got[i].name);
    EXPECT_TRUE(std::equal(wanted[i].data.begin(), wanted[i].data.end(), got[i].data.begin(),
                           got[i].data.end()))
        << wanted[i].name;
  }
  EXPECT_EQ(restored.Metadata(), saved.Metadata());
  EXPECT_EQ(restored.progress.best_accuracy, 0.1 + 0.2);
}

TEST(TrainingStateTest, AFileOfAnotherOptimizerIsRefused) {
  const TempDir folder;
  TrainingState sgd = State(TinyConfig(), 1);
  ASSERT_TRUE(WriteSafetensors(folder.File("x"), sgd.Tensors(), sgd.Metadata()).ok());
  TrainingState adam = State(TinyConfig({"optim.adam={}"}), 1);
  const Status status = adam.Restore(SafetensorsFile::Read(folder.File("x")).value());
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), testing::HasSubstr("optimizer."));
}

TEST(TrainingStateTest, NamesTheWeightThatIsNotFinite) {
  TrainingState state = State(TinyConfig(), 1);
  EXPECT_TRUE(state.CheckFinite().ok());
  const Parameter* p = state.model()->arena().FindBuffer("bn1.running_var");
  p->value().back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(state.CheckFinite().message(), testing::HasSubstr("bn1.running_var"));
}

TEST(ProgressMetadataTest, MissingAndBrokenNumbersAreNamed) {
  auto metadata = ProgressMetadata({});
  metadata.erase("best_step");
  EXPECT_THAT(ParseProgress(metadata).status().message(), testing::HasSubstr("'best_step'"));
  for (const char* text : {"", "x", "1x", "1.5", "99999999999999999999"}) {
    metadata["best_step"] = text;
    EXPECT_EQ(ParseProgress(metadata).status().code(), StatusCode::kDataLoss) << text;
  }
}

// They would end in an internal error, or in a run that believes in it.
TEST(TrainingStateTest, NumbersThatNoRunComesToAreRefused) {
  const std::map<std::string, std::string> good = ProgressMetadata(
      {.step = 7, .evaluated_step = 5, .best_step = 5, .best_accuracy = 0.5, .skipped_steps = 3});
  ASSERT_TRUE(ParseProgress(good).ok());
  ASSERT_TRUE(ParseProgress(ProgressMetadata({})).ok());
  const std::pair<const char*, const char*> wrong[] = {
      {"completed_steps", "-1"}, {"completed_steps", "9223372036854775807"},
      {"evaluated_step", "8"},   {"evaluated_step", "-1"},
      {"best_step", "8"},        {"best_step", "-2"},
      {"best_accuracy", "nan"},  {"best_accuracy", "inf"},
      {"best_accuracy", "1.5"},  {"skipped_steps", "-1"},
      {"skipped_steps", "8"},    {"skipped_in_a_row", "-1"},
  };
  for (const auto& [key, text] : wrong) {
    auto metadata = good;
    metadata[key] = text;
    const Status status = ParseProgress(metadata).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << key << " " << text;
    EXPECT_THAT(status.message(), testing::HasSubstr(key)) << text;
  }
}

}  // namespace
}  // namespace ringtail
