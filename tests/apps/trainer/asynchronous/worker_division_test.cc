// How many images workers compute with, and how many make an update, whatever the number of workers.
#include "apps/trainer/asynchronous/worker_division.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/apps/tiny_run.h"
#include "tests/apps/trainer/thread_world.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RunConfig Config(const std::string& asynchronous) {
  return TinyConfig({"train.batch=16", "dist.asynchronous={ " + asynchronous + " }"}).config;
}

std::vector<StatusOr<WorkerDivision>> Divide(int ranks, const RunConfig& config,
                                             const RankBatches& saved = {}) {
  std::vector<StatusOr<WorkerDivision>> results(ranks, Internal("it has not come so far"));
  OnTrainingRanks(ranks, [&](TrainingWorld* world) {
    const auto measure = [](int64_t /*batch*/) -> StatusOr<double> {
      return Internal("nothing was to be measured");
    };
    SavedBatches known;
    if (world->leads()) known.batches = saved;  // the others may not reach the folder of the run
    results[world->rank()] = DivideAmongWorkers({}, config, known, measure, world);
  });
  return results;
}

// What rank 0 has; the others must have the same table.
WorkerDivision Agreed(const std::vector<StatusOr<WorkerDivision>>& results) {
  for (size_t rank = 0; rank < results.size(); ++rank) {
    if (!results[rank].ok()) {
      ADD_FAILURE() << rank << ": " << results[rank].status().message();
      return {};
    }
    EXPECT_EQ(results[rank]->batches.all.batches, results[0]->batches.all.batches);
    EXPECT_EQ(results[rank]->images_per_step, results[0]->images_per_step);
  }
  return *results[0];
}

TEST(WorkerDivisionTest, AsDrawn) {
  const WorkerDivision synchronous = Agreed(Divide(4, Config("rule: SYNCHRONOUS")));
  EXPECT_THAT(synchronous.batches.all.batches, ElementsAre(16, 16, 16, 16));
  EXPECT_EQ(synchronous.images_per_step, 64);
  EXPECT_EQ(Agreed(Divide(4, Config("rule: ASYNCHRONOUS"))).images_per_step, 16);
  EXPECT_EQ(Agreed(Divide(4, Config("rule: SOFT_SYNC splits: 2"))).images_per_step, 32);
  EXPECT_EQ(Agreed(Divide(4, Config("rule: ASYNCHRONOUS gradients_per_push: 3"))).images_per_step,
            48);
}

TEST(WorkerDivisionTest, RanksThatOnlyServeHaveNoImages) {
  const RunConfig config = Config("rule: SYNCHRONOUS servers: 1 dedicated: true");
  const auto results = Divide(4, config);
  const WorkerDivision division = Agreed(results);
  EXPECT_THAT(division.batches.all.batches, ElementsAre(0, 16, 16, 16));
  EXPECT_EQ(division.images_per_step, 48);
  EXPECT_EQ(WorkersOf(division.batches.all), 3);
  EXPECT_EQ(results[1]->batches.own.first_row, 0);
  EXPECT_EQ(results[3]->batches.own.first_row, 32);
}

// An update that all workers make keeps its images, and they are divided among those that are there;
// elsewhere a worker keeps its batch. Rates and phases follow images, so a step stays what it was.
TEST(WorkerDivisionTest, ARunThatContinuesKeepsTheImagesOfAStep) {
  const RankBatches saved = {.global_batch = 64, .batches = {16, 16, 16, 16}};
  const WorkerDivision synchronous = Agreed(Divide(2, Config("rule: SYNCHRONOUS"), saved));
  EXPECT_THAT(synchronous.batches.all.batches, ElementsAre(32, 32));
  EXPECT_EQ(synchronous.images_per_step, 64);
  const WorkerDivision asynchronous =
      Agreed(Divide(2, Config("rule: SOFT_SYNC splits: 2"), {.global_batch = 32}));
  EXPECT_THAT(asynchronous.batches.all.batches, ElementsAre(16, 16));
  EXPECT_EQ(asynchronous.images_per_step, 32);
}

TEST(WorkerDivisionTest, CheckpointsHaveTheWorkersBatchesOnlyWhereTheyMakeTheStep) {
  const RankBatches batches = {.global_batch = 64, .batches = {16, 16, 16, 16}};
  EXPECT_THAT(CheckpointDivision(batches, 64).batches, ElementsAre(16, 16, 16, 16));
  const RankBatches apart = CheckpointDivision(batches, 16);
  EXPECT_EQ(apart.global_batch, 16);
  EXPECT_TRUE(apart.batches.empty());
}

TEST(WorkerDivisionTest, SomeRankMustCompute) {
  for (const char* servers : {"", "servers: 4"}) {
    const auto results =
        Divide(4, Config(std::string("rule: ASYNCHRONOUS dedicated: true ") + servers));
    for (const auto& result : results) {
      EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(result.status().message(), HasSubstr("dist.asynchronous.dedicated: of 4 ranks"));
      EXPECT_THAT(result.status().message(), HasSubstr("is not between 1 and 3"));
    }
  }
}

}  // namespace
}  // namespace ringtail
