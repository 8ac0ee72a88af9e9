#include "apps/trainer/checkpoint/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "tests/apps/tiny_run.h"
#include "tests/apps/trainer/thread_world.h"
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
}

TEST(TrainingStateTest, AFileBringsEverythingBack) {
  const TempDir folder;
  const LoadedConfig loaded = TinyConfig({"optim.adam={}"});
  TrainingState saved = State(loaded, 1), restored = State(loaded, 2);
  FillEverything(&saved);
  ASSERT_TRUE(WriteSafetensors(folder.File("x"), saved.Tensors(), {}).ok());
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
}

TEST(TrainingStateTest, AFileOfAnotherOptimizerIsRefused) {
  const TempDir folder;
  TrainingState sgd = State(TinyConfig(), 1);
  ASSERT_TRUE(WriteSafetensors(folder.File("x"), sgd.Tensors(), {}).ok());
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

// What cannot be restored must not take the place of what can.
TEST(TrainingStateTest, IsFiniteIfAFileOfItIsRestored) {
  const TempDir folder;
  const LoadedConfig loaded = TinyConfig({"optim.adam={}"});
  TrainingState state = State(loaded, 1), restored = State(loaded, 2);
  FillEverything(&state);
  for (const StateSlot& slot : state.Slots()) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      EXPECT_TRUE(state.CheckFinite().ok());
      const float before = std::exchange(slot.values.back(), bad);
      const Status status = state.CheckFinite();
      EXPECT_EQ(status.code(), StatusCode::kDataLoss) << slot.name;
      EXPECT_THAT(status.message(), testing::HasSubstr("'" + slot.name + "'"));
      ASSERT_TRUE(WriteSafetensors(folder.File("x"), state.Tensors(), {}).ok());
      EXPECT_FALSE(restored.Restore(SafetensorsFile::Read(folder.File("x")).value()).ok());
      slot.values.back() = before;
    }
  }
}

// Ranks 0 and 1 hold the same, rank 2 has other weights; then rank 1 has gone on.
TEST(ShareStateTest, OnlyWhatDiffersTravels) {
  const LoadedConfig loaded = TinyConfig({"optim.ema_decay=0.9"});
  OnTrainingRanks(3, [&](TrainingWorld* world) {
    TrainingState state = State(loaded, world->rank() == 2 ? 2 : 1);
    const StateChecksums source = State(loaded, 1).Checksums();
    const int64_t all = [&] {
      int64_t bytes = 0;
      for (const std::span<float> block : state.Blocks()) {
        bytes += static_cast<int64_t>(block.size_bytes());
      }
      return bytes;
    }();
    ASSERT_TRUE(world->ShareState(&state, /*source_rank=*/0).ok());
    EXPECT_EQ(state.Checksums(), source);
    const int64_t first = world->sent_bytes();
    ASSERT_TRUE(world->ShareState(&state, 0).ok());
    const int64_t same = world->sent_bytes() - first;
    EXPECT_LT(same, all / 10);  // checksums and progress
    if (world->rank() == 0) {
      EXPECT_GT(first, same);
    }

    if (world->rank() == 1) FillEverything(&state);
    ASSERT_TRUE(world->ShareState(&state, 1).ok());
    TrainingState filled = State(loaded, 1);
    FillEverything(&filled);
    EXPECT_EQ(state.Checksums(), filled.Checksums());
    if (world->rank() == 1) {
      EXPECT_GE(world->sent_bytes() - first - same, all);
    }
  });
}

}  // namespace
}  // namespace ringtail
