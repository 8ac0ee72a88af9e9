// Residuals go into a checkpoint and come out of it: exactly in a world of the same size, and in
// any other world with the same sum.
#include "dist/compression/compression_state.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/dist/compression/compressing_rank.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

constexpr int kSteps = 6;

struct Route {
  std::string name, config;
  bool shard = false;
  double momentum = 0;
};
void PrintTo(const Route& route, std::ostream* out) { *out << route.name; }

// Blocks of all ranks by name, in the order of ranks; the sum of all residuals; and the reduced
// gradients of a step.
struct States {
  std::map<std::string, std::vector<std::vector<float>>> blocks;
  std::vector<double> residual;
  std::vector<std::vector<float>> stepped;  // by rank, all alike
};

// The sum over ranks of an element of a block.
double Sum(const States& states, const std::string& block, int64_t element) {
  double sum = 0;
  const auto found = states.blocks.find(block);
  if (found == states.blocks.end()) return 0;
  for (const std::vector<float>& rank : found->second) sum += rank[element];
  return sum;
}

void AddTo(States* states, const CompressedReducer& reducer, int rank, int size) {
  for (const auto& block : reducer.state()) {
    auto& ranks = states->blocks[block.name];
    ranks.resize(size);
    ranks[rank].assign(block.values.begin(), block.values.end());
    if (block.name != StateBlock::kResidual && block.name != StateBlock::kResidualOfSums) continue;
    states->residual.resize(block.values.size());
    for (size_t i = 0; i < block.values.size(); ++i) states->residual[i] += block.values[i];
  }
}

class CompressionStateTest : public testing::TestWithParam<Route> {
 protected:
  // Trains a few steps; writes a file, and a part for each rank. `more`: of the config.
  States Save(int size, const std::string& more = "") {
    States states;
    const World world = MakeSharedMemoryWorld(size);
    std::mutex mutex;
    OnEveryRank(size, [&](int rank) {
      CompressingRank self(world[rank].get(), GetParam().config + more, GetParam().shard);
      for (int step = 0; step < kSteps; ++step) ASSERT_TRUE(self.Step(step).ok());
      const std::lock_guard lock(mutex);
      AddTo(&states, *self.reducer, rank, size);
      const auto own = CompressionState::Own(self.reducer->state(), rank);
      Status written = WriteSafetensors(PartOf(rank), own, {});
      if (rank == 0 && written.ok()) {
        written = WriteSafetensors(path_, CompressionState::Shared(self.reducer->state()), {});
      }
      ASSERT_TRUE(written.ok()) << written.message();
    });
    saved_world_ = size;
    return states;
  }
  // As older versions did: puts everything into one file, which rank 0 reads.
  void PutAllIntoOneFile() {
    std::vector<SafetensorsFile> files;
    files.push_back(*SafetensorsFile::Read(path_));
    for (int rank = 0; rank < saved_world_; ++rank) {
      files.push_back(*SafetensorsFile::Read(PartOf(rank)));
    }
    std::vector<TensorView> tensors;
    for (const SafetensorsFile& file : files) {
      for (const auto& [name, entry] : file.entries()) {
        tensors.push_back(ViewF32(name, entry.shape, *file.F32(name, {})));
      }
    }
    const Status written = WriteSafetensors(folder_.File("one.safetensors"), tensors, {});
    ASSERT_TRUE(written.ok()) << written.message();
    path_ = folder_.File("one.safetensors");
    saved_world_ = 0;
  }
  // `step`: also does a step, with the gradients of step kSteps.
  States Load(int size, const std::string& more = "", bool step = false) {
    States states;
    const World world = MakeSharedMemoryWorld(size);
    std::mutex mutex;
    OnEveryRank(size, [&](int rank) {
      CompressingRank self(world[rank].get(), GetParam().config + more, GetParam().shard,
                           /*carries_over=*/true);
      CompressionState saved;
      const int source = size - 1;
      if (rank == source) {
        const auto file = SafetensorsFile::Read(path_);
        ASSERT_TRUE(file.ok());
        auto read = CompressionState::Read(*file);
        ASSERT_TRUE(read.ok()) << read.status().message();
        saved = *std::move(read);
      }
      const Status status =
          saved.Distribute(self.communicator.get(), source, self.reducer->state());
      ASSERT_TRUE(status.ok()) << status.message();
      for (int from = 0; from < saved_world_; ++from) {
        if (!CompressionState::Needs(rank, size, from, saved_world_)) continue;
        const Status added =
            CompressionState::AddPart(*SafetensorsFile::Read(PartOf(from)), from, saved_world_,
                                      rank, size, self.reducer->state());
        ASSERT_TRUE(added.ok()) << added.message();
      }
      ASSERT_TRUE(self.reducer->StartCarryOver(self.communicator.get()).ok());
      if (step) {
        ASSERT_TRUE(self.Step(kSteps).ok());
      }
      const std::lock_guard lock(mutex);
      AddTo(&states, *self.reducer, rank, size);
      states.stepped.resize(size);
      states.stepped[rank].assign(self.arena->grads().begin(), self.arena->grads().end());
    });
    return states;
  }

  std::string PartOf(int rank) const { return folder_.File(fmt::format("part{}", rank)); }

  const TempDir folder_;
  std::string path_ = folder_.File("state.safetensors");
  int saved_world_ = 0;  // parts beside the file
};

TEST_P(CompressionStateTest, AWorldOfTheSameSizeContinuesExactly) {
  const States saved = Save(3), loaded = Load(3);
  EXPECT_FALSE(saved.blocks.empty());
  EXPECT_EQ(saved.blocks, loaded.blocks);
}

TEST_P(CompressionStateTest, AnotherWorldHasTheSameSumOfResiduals) {
  const States saved = Save(4);
  ASSERT_FALSE(saved.residual.empty());
  for (const int size : {1, 2, 3, 5}) {
    const States loaded = Load(size);
    ASSERT_EQ(loaded.residual.size(), saved.residual.size());
    double largest = 0;
    for (size_t i = 0; i < saved.residual.size(); ++i) {
      EXPECT_NEAR(loaded.residual[i], saved.residual[i], 1e-5) << size << " ranks, element " << i;
      largest = std::max(largest, std::abs(saved.residual[i]));
    }
    EXPECT_GT(largest, 0.01);
  }
}

TEST_P(CompressionStateTest, AFileOfAnOlderVersionLoads) {
  const States saved = Save(3);
  std::map<int, States> loaded;
  for (const int size : {1, 2, 3, 4}) loaded[size] = Load(size);
  PutAllIntoOneFile();
  EXPECT_EQ(Load(3).blocks, saved.blocks);
  for (const int size : {1, 2, 3, 4}) {
    const States old = Load(size);
    ASSERT_EQ(old.residual.size(), loaded[size].residual.size());
    for (size_t i = 0; i < old.residual.size(); ++i) {
      ASSERT_NEAR(old.residual[i], loaded[size].residual[i], 1e-6)
          << size << " ranks, element " << i;
    }
  }
}

// The new run sends these layers dense: the residuals come with the next sum. Of the momentum, too,
// each rank had its own part, and the sum over ranks continues.
TEST_P(CompressionStateTest, ALayerThatIsNoLongerCompressedSendsItsResidual) {
  const States saved = Save(4);
  const double m = GetParam().momentum;
  for (const std::string layers : {"fc.weight", "*"}) {
    const std::string more = fmt::format(" rule {{ name: '{}' scheme {{ dense {{}} }} }}", layers);
    for (const int size : {1, 3, 5}) {
      SCOPED_TRACE(fmt::format("{} ranks, {}", size, layers));
      const States loaded = Load(size, more, /*step=*/true);
      EXPECT_THAT(loaded.stepped, testing::Each(loaded.stepped[0]));
      const auto arena = LayersOfEachKind();
      for (const Parameter& p : arena->parameters()) {
        if (p.spec.kind == ParameterKind::kVector) continue;
        if (layers != "*" && layers != p.spec.name) continue;
        for (int64_t i = p.offset; i < p.offset + p.elements; ++i) {
          double sum = m * Sum(saved, "momentum", i) + saved.residual[i];
          for (int r = 0; r < size; ++r) sum += CompressingRank::Gradient(r, kSteps, i);
          ASSERT_NEAR(loaded.stepped[0][i], sum, 1e-4) << p.spec.name << ", " << i;
          ASSERT_EQ(Sum(loaded, StateBlock::kResidual, i), 0);
          ASSERT_EQ(Sum(loaded, "momentum", i), 0);
        }
      }
    }
  }
}

class MomentumStateTest : public CompressionStateTest {};

TEST_P(MomentumStateTest, ALayerThatIsNewlyCompressedKeepsItsMomentum) {
  const States saved = Save(4, " rule { name: 'fc.weight' scheme { dense {} } }");
  const States loaded = Load(3);
  const auto arena = LayersOfEachKind();
  const Parameter& fc = *arena->FindParameter("fc.weight");
  double largest = 0;
  for (int64_t i = fc.offset; i < fc.offset + fc.elements; ++i) {
    const float expected = saved.blocks.at("dense_momentum")[0][i];
    ASSERT_EQ(Sum(loaded, "momentum", i), expected);
    ASSERT_EQ(Sum(loaded, "dense_momentum", i), 0);
    largest = std::max(largest, std::abs(double{expected}));
  }
  EXPECT_GT(largest, 0.1);
}

const Route kDgc = {"dgc", "scheme { dgc { density: 0.05 } } min_elements: 100", false, 0.9};
const auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(
    Routes, CompressionStateTest,
    testing::Values(Route{"gathered", "scheme { one_bit {} } min_elements: 100"},
                    Route{"sharded", "scheme { one_bit {} } min_elements: 100", true},
                    Route{"power_sgd", "scheme { power_sgd { rank: 1 } } min_elements: 100"}, kDgc),
    kName);
INSTANTIATE_TEST_SUITE_P(Routes, MomentumStateTest, testing::Values(kDgc), kName);

TEST(CompressionState, RefusesNaN) {
  const TempDir folder;
  const std::string path = folder.File("state.safetensors");
  const std::vector<float> values = {1, std::nanf(""), 3};
  ASSERT_TRUE(
      WriteSafetensors(path, std::vector{ViewF32("compression.unsent.0", {3}, values)}, {}).ok());
  const SafetensorsFile file = *SafetensorsFile::Read(path);
  EXPECT_EQ(CompressionState::Read(file).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace ringtail
