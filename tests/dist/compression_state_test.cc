// What has not been sent goes into a checkpoint and comes out of it: exactly in a world of the same
// size, and in another one so that the sum is kept.
#include "dist/compression/compression_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/dist/compressing_rank.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

constexpr int kSteps = 6;

struct Route {
  std::string name, config;
  bool shard = false;
};
void PrintTo(const Route& route, std::ostream* out) { *out << route.name; }

// Blocks of all ranks by name, in the order of ranks; and the sum of all that is to be sent.
struct States {
  std::map<std::string, std::vector<std::vector<float>>> blocks;
  std::vector<double> unsent;
};

void AddTo(States* states, GradientCompressor* compressor, int rank, int size) {
  for (const auto& block : compressor->state()) {
    auto& ranks = states->blocks[block.name];
    ranks.resize(size);
    ranks[rank].assign(block.values.begin(), block.values.end());
    if (block.name != GradientCompressor::kUnsent && block.name != GradientCompressor::kUnsentSums)
      continue;
    states->unsent.resize(block.values.size());
    for (size_t i = 0; i < block.values.size(); ++i) states->unsent[i] += block.values[i];
  }
}

class CompressionStateTest : public testing::TestWithParam<Route> {
 protected:
  // Trains a few steps and writes a file.
  States Save(int size) {
    States states;
    const World world = MakeSharedMemoryWorld(size);
    std::mutex mutex;
    OnEveryRank(size, [&](int rank) {
      CompressingRank self(world[rank].get(), GetParam().config, GetParam().shard);
      for (int step = 0; step < kSteps; ++step) ASSERT_TRUE(self.Step(step).ok());
      CompressionState gathered;
      ASSERT_TRUE(gathered.Gather(self.communicator.get(), self.compressor.get()).ok());
      EXPECT_EQ(gathered.empty(), rank > 0);
      const std::lock_guard lock(mutex);
      AddTo(&states, self.compressor.get(), rank, size);
      if (rank == 0) {
        const Status written = WriteSafetensors(path_, gathered.Tensors(), {});
        ASSERT_TRUE(written.ok()) << written.message();
      }
    });
    return states;
  }
  States Load(int size) {
    States states;
    const World world = MakeSharedMemoryWorld(size);
    std::mutex mutex;
    OnEveryRank(size, [&](int rank) {
      CompressingRank self(world[rank].get(), GetParam().config, GetParam().shard);
      CompressionState saved;
      if (rank == 0) {
        const auto file = SafetensorsFile::Read(path_);
        ASSERT_TRUE(file.ok());
        auto read = CompressionState::Read(*file);
        ASSERT_TRUE(read.ok()) << read.status().message();
        saved = *std::move(read);
      }
      const Status status = saved.Distribute(self.communicator.get(), self.compressor.get());
      ASSERT_TRUE(status.ok()) << status.message();
      const std::lock_guard lock(mutex);
      AddTo(&states, self.compressor.get(), rank, size);
    });
    return states;
  }

  const TempDir folder_;
  const std::string path_ = folder_.File("state.safetensors");
};

TEST_P(CompressionStateTest, AWorldOfTheSameSizeGoesOnExactly) {
  const States saved = Save(3), loaded = Load(3);
  EXPECT_FALSE(saved.blocks.empty());
  EXPECT_EQ(saved.blocks, loaded.blocks);
}

TEST_P(CompressionStateTest, AnotherWorldHasAsMuchToSend) {
  const States saved = Save(4);
  ASSERT_FALSE(saved.unsent.empty());
  for (const int size : {2, 3, 5}) {
    const States loaded = Load(size);
    ASSERT_EQ(loaded.unsent.size(), saved.unsent.size());
    double largest = 0;
    for (size_t i = 0; i < saved.unsent.size(); ++i) {
      EXPECT_NEAR(loaded.unsent[i], saved.unsent[i], 1e-5) << size << " ranks, element " << i;
      largest = std::max(largest, std::abs(saved.unsent[i]));
    }
    EXPECT_GT(largest, 0.01);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Routes, CompressionStateTest,
    testing::Values(Route{"gathered", "scheme { one_bit {} } min_elements: 100"},
                    Route{"sharded", "scheme { one_bit {} } min_elements: 100", true},
                    Route{"power_sgd", "scheme { power_sgd { rank: 1 } } min_elements: 100"},
                    Route{"dgc", "scheme { dgc { density: 0.05 } } min_elements: 100"}),
    [](const auto& info) { return info.param.name; });

TEST(CompressionState, ANumberThatIsNoneIsRefused) {
  const TempDir folder;
  const std::string path = folder.File("state.safetensors");
  const std::vector<float> values = {1, std::nanf(""), 3};
  ASSERT_TRUE(
      WriteSafetensors(path, std::vector{ViewF32("compression.unsent.0", {3}, values)}, {}).ok());
  EXPECT_EQ(CompressionState::Read(*SafetensorsFile::Read(path)).status().code(),
            StatusCode::kDataLoss);
}

}  // namespace
}  // namespace ringtail
