// How many images a rank takes: as the user says, as before, or by the ranks' speeds; and that all
// ranks decide the same.
#include "apps/trainer/division/batch_division.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "apps/trainer/checkpoint/numerics.h"
#include "core/parallel_for.h"
#include "dist/collectives/plan.h"
#include "tests/apps/trainer/thread_world.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Batches = std::vector<int64_t>;
using Speeds = std::vector<double>;

// Ranks as threads of this process: the requests and the results, by rank.
std::vector<StatusOr<BatchDivision>> Divide(const std::vector<BatchRequest>& requests,
                                            const TrainConfig& train, const Speeds& measured = {},
                                            const SavedBatches& saved = {}) {
  const auto size = static_cast<int>(requests.size());
  std::vector<StatusOr<BatchDivision>> results(requests.size(), Internal("it has not come so far"));
  OnTrainingRanks(size, [&](TrainingWorld* world) {
    const int rank = world->rank();
    const auto measure = [&](int64_t /*batch*/) -> StatusOr<double> {
      if (measured.empty()) return Internal("nothing was to be measured");
      return measured[rank];
    };
    // The others may not reach the folder of the run.
    SavedBatches known{.source_rank = saved.source_rank};
    if (rank == saved.source_rank) known = saved;
    results[rank] = DivideBatch(requests[rank], train, known, measure, world);
    if (!results[rank].ok()) world->Abort(results[rank].status());
  });
  return results;
}

// The table that all ranks have, each with its own rows of it.
Batches Table(const std::vector<StatusOr<BatchDivision>>& results) {
  int64_t row = 0;
  for (size_t rank = 0; rank < results.size(); ++rank) {
    if (!results[rank].ok()) {
      ADD_FAILURE() << results[rank].status().message();
      return {};
    }
    const BatchDivision &division = *results[rank], &first = *results[0];
    EXPECT_EQ(division.all.batches, first.all.batches);
    EXPECT_EQ(division.all.machines, first.all.machines);
    EXPECT_EQ(division.summary, first.summary);
    EXPECT_EQ(division.own.first_row, row);
    EXPECT_EQ(division.own.batch, division.all.batches[rank]);
    row += division.own.batch;
    EXPECT_EQ(division.own.global_batch, first.own.global_batch);
  }
  EXPECT_EQ(row, results[0]->own.global_batch);
  return results[0]->all.batches;
}

TrainConfig Train(int batch, int accumulation = 1) {
  TrainConfig train;
  train.set_batch(batch);
  train.set_accumulation(accumulation);
  return train;
}

std::vector<BatchRequest> Same(size_t ranks, const BatchRequest& request) {
  return std::vector<BatchRequest>(ranks, request);
}

std::vector<std::string> MachinesLikeThis(size_t ranks) {
  return std::vector<std::string>(ranks, ThisMachine());
}

TEST(BatchDivision, ByDefaultEveryRankHasTheConfigsBatch) {
  const auto results = Divide(Same(3, {}), Train(32));
  EXPECT_THAT(Table(results), ElementsAre(32, 32, 32));
  EXPECT_THAT(results[0]->summary, IsEmpty());
  EXPECT_THAT(results[0]->all.machines, IsEmpty());
  EXPECT_THAT(results[0]->all.threads,
              ElementsAre(NumComputeThreads(), NumComputeThreads(), NumComputeThreads()));
  EXPECT_THAT(Table(Divide({{}, {.local = 5}, {.local = 1}}, Train(32))), ElementsAre(32, 5, 1));
}

TEST(BatchDivision, BySpeed) {
  const auto results = Divide(Same(2, {.by_speed = true}), Train(32), {212, 105});
  EXPECT_THAT(Table(results), ElementsAre(43, 21));
  EXPECT_EQ(results[1]->summary,
            "batches 43, 21 of 64: in proportion to speeds 212 and 105 images/s "
            "(--local-batch auto)");
  EXPECT_EQ(results[1]->all.machines, MachinesLikeThis(2));
  EXPECT_THAT(Table(Divide(Same(2, {.by_speed = true}), Train(32, 4), {212, 105})),
              ElementsAre(44, 20))
      << "multiples of train.accumulation";
}

TEST(BatchDivision, WhatIsGivenIsNotMeasured) {
  std::vector<BatchRequest> requests = Same(3, {.by_speed = true});
  for (size_t i = 0; i < 3; ++i) {
    requests[i].speed = [i] { return static_cast<double>(1 + i); };
  }
  const auto results = Divide(requests, Train(4));
  EXPECT_THAT(Table(results), ElementsAre(2, 4, 6));
  EXPECT_THAT(results[0]->summary, HasSubstr("speeds 1, 2 and 3 images/s"));
}

TEST(BatchDivision, EqualSpeedsAreSaidToBe) {
  const auto results = Divide(Same(2, {.by_speed = true}), Train(32), {102, 99.6});
  EXPECT_THAT(Table(results), ElementsAre(32, 32));
  EXPECT_EQ(results[0]->summary,
            "batches 32, 32 of 64: speeds of 102 and 100 images/s count as equal "
            "(--local-batch auto)");
}

TEST(BatchDivision, ManyRanksAreSummedUp) {
  Speeds speeds(10, 20);
  speeds[3] = 5.25;
  const auto results = Divide(Same(10, {.by_speed = true}), Train(37), speeds);
  EXPECT_EQ(Table(results)[3], 10);
  EXPECT_THAT(results[0]->summary,
              HasSubstr("batches 10 .. 40 of 370: in proportion to speeds 5.2 .. 20 images/s"));
}

TEST(BatchDivision, OneRankHasNothingToShareOut) {
  const auto alone =
      DivideBatch({.by_speed = true}, Train(8), {}, {}, std::make_unique<TrainingWorld>().get());
  EXPECT_THAT(alone.value().all.batches, ElementsAre(8));
  EXPECT_THAT(alone.value().summary, IsEmpty());
}

// A run continues that has divided its batch as `saved`, which rank 0 knows.
std::vector<StatusOr<BatchDivision>> Resume(size_t ranks, const BatchRequest& request,
                                            const RankBatches& saved, const TrainConfig& train,
                                            const Speeds& measured = {}) {
  return Divide(Same(ranks, request), train, measured, {.batches = saved});
}

TEST(BatchDivision, ARunGoesOnAsItWas) {
  const RankBatches saved{.global_batch = 64, .batches = {43, 21}};
  EXPECT_THAT(Table(Resume(2, {}, saved, Train(32))), ElementsAre(43, 21));
  EXPECT_THAT(Table(Resume(3, {}, saved, Train(32))), ElementsAre(22, 21, 21));
  EXPECT_THAT(Table(Resume(1, {}, saved, Train(32))), ElementsAre(64));
  EXPECT_THAT(Table(Resume(2, {.local = 32}, saved, Train(32))), ElementsAre(32, 32));
  // One that was written before ranks' batches were kept.
  EXPECT_THAT(Table(Resume(2, {}, {.global_batch = 64}, Train(16))), ElementsAre(32, 32));
}

// Whatever the number of ranks, as long as there is a part of the accumulation for each.
TEST(BatchDivision, ARunWithAccumulationGoesOnWithAnyNumberOfRanks) {
  const RankBatches saved{.global_batch = 64, .batches = {32, 32}};
  EXPECT_THAT(Table(Resume(3, {}, saved, Train(32, 4))), ElementsAre(24, 20, 20));
  const RankBatches by_default{.global_batch = 512, .batches = {256, 256}};
  EXPECT_THAT(Table(Resume(3, {}, by_default, Train(256, 4))), ElementsAre(172, 172, 168));
  for (const int64_t global_batch : {36, 64, 256, 260, 512}) {
    for (size_t began = 1; began <= 9; ++began) {
      RankBatches run{.global_batch = global_batch};
      for (size_t rank = 0; rank < began; ++rank) {
        run.batches.push_back(EvenPart(global_batch / 4, began, rank).count * 4);
      }
      for (size_t ranks = 1; ranks <= 9; ++ranks) {
        const Batches batches = Table(Resume(ranks, {}, run, Train(32, 4)));
        ASSERT_EQ(batches.size(), ranks);
        EXPECT_EQ(std::accumulate(batches.begin(), batches.end(), int64_t{0}), global_batch);
        const auto [least, most] = std::ranges::minmax(batches);
        EXPECT_GE(least, 4);
        EXPECT_LE(most - least, 4);
        for (const int64_t batch : batches) EXPECT_EQ(batch % 4, 0);
        if (ranks == began) {
          EXPECT_EQ(batches, run.batches);
        }
      }
    }
  }
}

TEST(BatchDivision, BySpeedARunGoesOnAsItWasOnTheSameMachines) {
  RankBatches saved{.global_batch = 64, .batches = {43, 21}, .machines = MachinesLikeThis(2)};
  const auto kept = Resume(2, {.by_speed = true}, saved, Train(32));
  EXPECT_THAT(Table(kept), ElementsAre(43, 21));
  EXPECT_EQ(kept[0]->all.machines, saved.machines) << "for the next time that the run continues";
  EXPECT_THAT(kept[0]->summary,
              AllOf(HasSubstr("batches 43, 21 of 64"), HasSubstr("as the run began")));
  // With more ranks, on other machines, or if it was not divided by speed before: measured again.
  EXPECT_THAT(Table(Resume(3, {.by_speed = true}, saved, Train(32), {2, 1, 1})),
              ElementsAre(32, 16, 16));
  saved.machines[0] = "another processor, 2 threads, avx2";
  EXPECT_THAT(Table(Resume(2, {.by_speed = true}, saved, Train(32), {1, 3})), ElementsAre(16, 48));
  saved.machines.clear();
  EXPECT_THAT(Table(Resume(2, {.by_speed = true}, saved, Train(32), {1, 3})), ElementsAre(16, 48));
}

TEST(BatchDivision, AnyRankMayKnowTheRun) {
  const RankBatches saved{.global_batch = 64, .batches = {43, 11, 10}};
  for (int source = 0; source < 3; ++source) {
    EXPECT_THAT(
        Table(Divide(Same(3, {}), Train(32), {}, {.batches = saved, .source_rank = source})),
        ElementsAre(43, 11, 10));
  }
}

TEST(BatchDivision, WhatCannotBeIsRefused) {
  const auto message = [](const std::vector<StatusOr<BatchDivision>>& results) {
    for (const auto& result : results) {
      EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    }
    return results[0].status().message();
  };
  EXPECT_THAT(message(Divide({{.by_speed = true}, {.by_speed = true}, {.local = 3}}, Train(8))),
              AllOf(HasSubstr("--local-batch of rank 0 is auto, of rank 2 not auto"),
                    HasSubstr("give every rank the same")));
  const RankBatches saved{.global_batch = 8, .batches = {8}};
  EXPECT_THAT(message(Resume(2, {.local = 5}, saved, Train(8))),
              AllOf(HasSubstr("make them add up to 8"), HasSubstr("--local-batch auto")));
  EXPECT_THAT(message(Resume(3, {.by_speed = true}, saved, Train(4, 4), {1, 1, 1})),
              HasSubstr("8 images over all ranks cannot be divided among 3 ranks"));
  EXPECT_THAT(
      message(Resume(3, {}, saved, Train(4, 4))),
      AllOf(HasSubstr("8 images over all ranks cannot be divided among 3 ranks, each with a "
                      "multiple of 4 (train.accumulation)"),
            HasSubstr("start at most 2 (ringtail_launch -n 2)")));
  EXPECT_THAT(message(Resume(2, {}, {.global_batch = 9}, Train(4, 4))),
              HasSubstr("of 4 (train.accumulation); did the run begin with another value of it?"));
  EXPECT_THAT(
      message(Divide({{}, {.local = 22}}, Train(32, 4))),
      AllOf(HasSubstr("rank 1 would compute 22 of 54 images in 4 equal parts"),
            HasSubstr("--local-batch N, a multiple of 4, or all ranks --local-batch auto")));
}

}  // namespace
}  // namespace ringtail
