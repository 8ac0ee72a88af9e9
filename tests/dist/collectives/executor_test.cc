#include "dist/collectives/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "core/random.h"
#include "tests/dist/collectives/test_plans.h"
#include "tests/dist/test_world.h"
#include "tests/dist/transport/faulty_transport.h"

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

template <typename T>
using Arrays = std::vector<std::vector<T>>;  // by rank

// Numbers whose sum depends on the order in which they are added, if they are not whole. (Of millions most repeat: drawing
// them takes longer than what is tested.)
template <typename T>
Arrays<T> RandomArrays(int world, int64_t count) {
  constexpr int64_t kDrawn = 10'007;
  Arrays<T> arrays(world, std::vector<T>(count));
  Rng random(RngKey(7));
  for (auto& array : arrays) {
    for (int64_t i = 0; i < count; ++i) {
      array[i] = i >= kDrawn             ? array[i - kDrawn]
                 : std::is_integral_v<T> ? static_cast<T>(random.Below(1000))
                                         : static_cast<T>(random.Normal());
    }
  }
  return arrays;
}

struct RunOptions {
  int64_t segment_bytes = 64;
  size_t staging_bytes = 1024;
};

template <typename T>
std::vector<Status> RunPlans(const World& world, const PlanOf& plan_of, Arrays<T>* arrays,
                             const RunOptions& options = {}, uint64_t sequence = 1) {
  const int size = static_cast<int>(world.size());
  std::vector<Status> statuses(size);
  OnEveryRank(size, [&](int rank) {
    std::vector<T>& array = (*arrays)[rank];
    const auto count = static_cast<int64_t>(array.size());
    const Schedule schedule(plan_of(rank, size, count), rank,
                            {.name = "allreduce",
                             .type = ElementTypeOf<T>::kValue,
                             .count = count,
                             .segment_bytes = options.segment_bytes});
    Executor executor(world[rank].get(), {.staging_bytes = options.staging_bytes});
    statuses[rank] = executor.Run(schedule, sequence, std::span(array));
  });
  return statuses;
}

template <typename T>
Arrays<T> Expected(const PlanOf& plan_of, Arrays<T> arrays) {
  const int world = static_cast<int>(arrays.size());
  std::vector<Plan> plans;
  plans.reserve(world);
  for (int rank = 0; rank < world; ++rank) {
    plans.push_back(plan_of(rank, world, static_cast<int64_t>(arrays[0].size())));
  }
  RunInLockStep(plans, &arrays);
  return arrays;
}

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T>
void ExpectRunsAsPlanned(const World& world, const PlanOf& plan_of, int64_t count,
                         const RunOptions& options = {}) {
  SCOPED_TRACE("ranks " + std::to_string(world.size()) + ", elements " + std::to_string(count) +
               ", segment " + std::to_string(options.segment_bytes));
  Arrays<T> arrays = RandomArrays<T>(static_cast<int>(world.size()), count);
  const Arrays<T> expected = Expected(plan_of, arrays);
  static std::atomic<uint64_t> sequence = 0;
  for (const Status& status : RunPlans(world, plan_of, &arrays, options, ++sequence)) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  for (size_t rank = 0; rank < arrays.size(); ++rank) {
    EXPECT_TRUE(SameBits(arrays[rank], expected[rank])) << "rank " << rank;
  }
}

class ExecutorTest : public ::testing::TestWithParam<WorldKind> {};

INSTANTIATE_TEST_SUITE_P(Every, ExecutorTest, ::testing::ValuesIn(AllWorldKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ExecutorTest, ARingOfAnySizeAddsUpArraysOfAnySize) {
  for (const int ranks : {1, 2, 3, 5}) {
    const World world = GetParam().make(ranks);
    for (const int64_t count : {0, 1, ranks - 1, ranks, ranks + 1, 97, 1000}) {
      ExpectRunsAsPlanned<float>(world, TestRing, count);
    }
  }
}

TEST_P(ExecutorTest, EveryKindOfPlanAndElement) {
  const World world = GetParam().make(4);
  for (const auto plan_of : {TestRing, TestSingleReducer, TestDoubling}) {
    ExpectRunsAsPlanned<float>(world, plan_of, 3001);
    ExpectRunsAsPlanned<double>(world, plan_of, 3001);
    ExpectRunsAsPlanned<int64_t>(world, plan_of, 3001);
  }
}

TEST_P(ExecutorTest, SegmentsAndStagingChangeNoBit) {
  const World world = GetParam().make(4);
  for (const auto plan_of : {TestRing, TestSingleReducer, TestDoubling}) {
    for (const int64_t segment_bytes : {4, 100, 1 << 20}) {
      // One slot, two slots, and one for everything.
      for (const size_t slots : {1, 2, 64}) {
        const size_t slot_bytes = std::min<size_t>(segment_bytes + 64, 4096);
        ExpectRunsAsPlanned<float>(
            world, plan_of, 501,
            {.segment_bytes = segment_bytes, .staging_bytes = slots * slot_bytes});
      }
    }
  }
}

TEST_P(ExecutorTest, LargeArrays) {
  const World world = GetParam().make(3);
  ExpectRunsAsPlanned<float>(world, TestRing, 3'000'001,
                             {.segment_bytes = 1 << 18, .staging_bytes = 4 << 20});
}

TEST_P(ExecutorTest, DelaysChangeNoBit) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const World world =
        MakeFaulty(GetParam().make(4), {.seed = seed, .delay = std::chrono::microseconds(300)});
    ExpectRunsAsPlanned<float>(world, TestRing, 400);
    ExpectRunsAsPlanned<float>(world, TestSingleReducer, 200, {.staging_bytes = 64});
    ExpectRunsAsPlanned<float>(world, TestDoubling, 200);
  }
}

TEST_P(ExecutorTest, TwoCollectivesInFlightDoNotMix) {
  const World world = GetParam().make(3);
  Arrays<float> first = RandomArrays<float>(3, 5000), second = RandomArrays<float>(3, 4000);
  const Arrays<float> expected_first = Expected(TestRing, first);
  const Arrays<float> expected_second = Expected(TestSingleReducer, second);
  std::vector<Status> statuses;
  {
    const std::jthread other([&] { statuses = RunPlans(world, TestRing, &first, {}, 1); });
    for (const Status& status : RunPlans(world, TestSingleReducer, &second, {}, 2)) {
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
  }
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(SameBits(first[rank], expected_first[rank]));
    EXPECT_TRUE(SameBits(second[rank], expected_second[rank]));
  }
}

TEST_P(ExecutorTest, RanksWithDifferentPlansGetAnErrorOnEveryRank) {
  const World world = GetParam().make(2);
  Arrays<float> arrays = RandomArrays<float>(2, 100);
  // Both send all, and both add: message by message nothing but the check is different.
  const PlanOf mixed = [](int rank, int ranks, int64_t count) {
    return rank == 0 ? TestRing(rank, ranks, count) : TestDoubling(rank, ranks, count);
  };
  for (const Status& status : RunPlans(world, mixed, &arrays)) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("allreduce 1 on rank"),
                                        HasSubstr("the two ranks do different things")));
  }
}

TEST_P(ExecutorTest, ArraysOfDifferentSizesAreAnError) {
  const World world = GetParam().make(3);
  Arrays<float> arrays = RandomArrays<float>(3, 1000);
  arrays[2].resize(999);
  for (const Status& status : RunPlans(world, TestRing, &arrays)) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
  }
}

TEST_P(ExecutorTest, AMessageThatDoesNotComeIsNamedWhenTheTimeIsOver) {
  const World world = GetParam().make(2);
  std::vector<float> array(64);
  const Schedule schedule(TestRing(0, 2, 64), 0,
                          {.name = "allreduce", .count = 64, .segment_bytes = 1024});
  Executor executor(world[0].get(), {.stall_timeout = std::chrono::milliseconds(50)});
  const Status status = executor.Run(schedule, 9, std::span(array));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      status.message(),
      AllOf(StartsWith("no operation ended for 50 ms (allreduce 9 on rank 0, round 1 of 2, "),
            HasSubstr("128 bytes"), EndsWith(" rank 1)")));
  // The other rank is told.
  CompletionQueue queue;
  std::vector<std::byte> memory(1);
  world[1]->Receive(0, {.tag = {.collective = 10}}, memory, {.queue = &queue});
  EXPECT_THAT(Await(&queue, 1)[0].message(),
              AllOf(HasSubstr("rank 0 stopped"), HasSubstr("allreduce 9 on rank 0")));
}

// Data moves elsewhere in the world, three times; what this rank waits for comes after it.
TEST_P(ExecutorTest, NoTimeIsOverWhileDataMovesElsewhere) {
  const World world = GetParam().make(2);
  std::vector<float> array(64);
  const Schedule schedule(TestRing(0, 2, 64), 0,
                          {.name = "allreduce", .count = 64, .segment_bytes = 1024});
  uint64_t looks = 0;
  Executor executor(world[0].get(), {.stall_timeout = std::chrono::milliseconds(10),
                                     .moved = [&looks] { return std::min<uint64_t>(looks++, 6); }});
  const Status status = executor.Run(schedule, 9, std::span(array));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_GT(looks, 6) << "it did not wait until nothing moved";
}

TEST_P(ExecutorTest, AnAbortOnAnyRankEndsTheCollectiveOnAll) {
  const World world = GetParam().make(3);
  Arrays<float> arrays = RandomArrays<float>(3, 1000);
  std::vector<Status> statuses(3);
  OnEveryRank(3, [&](int rank) {
    if (rank == 2) return world[2]->Abort(Cancelled("the user pressed Control-C"));
    const Schedule schedule(TestRing(rank, 3, 1000), rank, {.name = "allreduce", .count = 1000});
    Executor executor(world[rank].get(), {});
    statuses[rank] = executor.Run(schedule, 4, std::span(arrays[rank]));
  });
  for (const int rank : {0, 1}) {
    EXPECT_EQ(statuses[rank].code(), StatusCode::kCancelled);
    EXPECT_THAT(statuses[rank].message(),
                AllOf(HasSubstr("allreduce 4 on rank " + std::to_string(rank)),
                      HasSubstr("rank 2 stopped: the user pressed Control-C")));
  }
}

TEST_P(ExecutorTest, ADeathAtAnyMessageIsAnErrorOnEveryRankThatNamesTheDead) {
  for (const int64_t dies_after : {1, 2, 3, 5, 8, 12}) {
    World world = GetParam().make(3);
    world[1] =
        std::make_unique<FaultyTransport>(std::move(world[1]), Faults{.dies_after = dies_after});
    Arrays<float> arrays = RandomArrays<float>(3, 200);
    const std::vector<Status> statuses = RunPlans(world, TestRing, &arrays);
    for (const Status& status : statuses) {
      EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
      EXPECT_THAT(status.message(), HasSubstr("died of a fault ("));  // the cause comes first
      EXPECT_THAT(status.message(), Not(HasSubstr("(collective")));
    }
    EXPECT_THAT(statuses[0].message(), HasSubstr("rank 1 stopped"));
    EXPECT_THAT(statuses[2].message(), HasSubstr("rank 1 stopped"));
  }
}

// Whatever gets lost or is not what it should be: an error or the right sum, and never a hang.
TEST_P(ExecutorTest, NoFaultMakesAWrongSum) {
  int failed = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const World world = MakeFaulty(GetParam().make(3), {.seed = seed,
                                                        .delay = std::chrono::microseconds(100),
                                                        .loss = seed % 2 == 0 ? 0.02 : 0,
                                                        .corruption = seed % 2 == 1 ? 0.02 : 0});
    Arrays<float> arrays = RandomArrays<float>(3, 200);
    const Arrays<float> expected = Expected(TestRing, arrays);
    OnEveryRank(3, [&](int rank) {
      const Schedule schedule(TestRing(rank, 3, 200), rank,
                              {.name = "allreduce", .count = 200, .segment_bytes = 64});
      Executor executor(world[rank].get(), {.stall_timeout = std::chrono::milliseconds(100)});
      const Status status = executor.Run(schedule, 1, std::span(arrays[rank]));
      if (status.ok()) {
        EXPECT_TRUE(SameBits(arrays[rank], expected[rank]));
      } else if (rank == 0) {
        ++failed;
      }
    });
  }
  EXPECT_GT(failed, 3);
}

}  // namespace
}  // namespace ringtail
