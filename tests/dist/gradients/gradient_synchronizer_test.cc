// Gradients of several ranks are added up while "backward" still writes other ones.
#include "dist/gradients/gradient_synchronizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "dist/gradients/dense_reducer.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

std::unique_ptr<ParameterArena> SmallArena() {
  std::vector<ParameterSpec> specs;
  for (int i = 0; i < 9; ++i) specs.push_back({.name = std::to_string(i), .shape = {100 + 50 * i}});
  return std::move(*ParameterArena::Create(specs, {}));
}

// The gradient of element i of a parameter on rank `rank` in a step. Sums over few ranks are exact.
float Gradient(int rank, int step, int64_t i) {
  return static_cast<float>((rank + 1) * 1000 + step * 100 + i % 50);
}

// One rank of the world.
struct Rank {
  explicit Rank(Transport* transport)
      : communicator(std::move(*Communicator::Create(
            transport, Topology::Blocks(transport->world_size(), 1), {.algorithm = "ring"}))),
        thread(communicator.get()),
        arena(SmallArena()),
        buckets(MakeGradientBuckets(arena->parameters(), {.bytes = 1200, .end_bytes = 500})),
        synchronizer(&thread, arena.get(), buckets, &reducer) {}

  void Backward(int step) {
    for (const Parameter& p : arena->parameters()) {
      const std::span<float> grad = p.grad();
      for (size_t i = 0; i < grad.size(); ++i) {
        grad[i] = Gradient(communicator->rank(), step, static_cast<int64_t>(i));
      }
      synchronizer.OnReady(p);
    }
  }

  std::unique_ptr<Communicator> communicator;
  CommunicationThread thread;
  std::unique_ptr<ParameterArena> arena;
  std::vector<GradientBucket> buckets;
  DenseReducer reducer;
  GradientSynchronizer synchronizer;
};

class GradientSynchronizerTest : public testing::TestWithParam<WorldKind> {};

TEST_P(GradientSynchronizerTest, EveryRankHasTheSumsAfterEachStep) {
  for (const int size : {1, 2, 3}) {
    const World world = GetParam().make(size);
    OnEveryRank(size, [&](int rank) {
      Rank self(world[rank].get());
      ASSERT_GT(self.buckets.size(), 3U);
      for (int step = 0; step < 5; ++step) {
        self.Backward(step);
        // Odd steps wait for one bucket after the other.
        for (size_t bucket = 0; step % 2 == 1 && bucket < self.buckets.size(); ++bucket) {
          ASSERT_TRUE(self.thread.WaitFor(self.synchronizer.job(bucket)).ok());
        }
        if (step % 2 == 0) {
          ASSERT_TRUE(self.thread.Wait().ok());
        }
        for (const Parameter& p : self.arena->parameters()) {
          const std::span<float> grad = p.grad();
          for (size_t i = 0; i < grad.size(); ++i) {
            float sum = 0;
            for (int r = 0; r < size; ++r) sum += Gradient(r, step, static_cast<int64_t>(i));
            ASSERT_EQ(grad[i], sum) << p.spec.name << "[" << i << "] on rank " << rank;
          }
        }
      }
      const ExchangeTimes times = self.thread.TakeTimes();
      EXPECT_GE(times.busy_seconds, 0);
      EXPECT_EQ(self.thread.TakeTimes().busy_seconds, 0);
    });
  }
}

TEST_P(GradientSynchronizerTest, AnAbortedWorldEndsEveryWait) {
  const World world = GetParam().make(3);
  OnEveryRank(3, [&](int rank) {
    Rank self(world[rank].get());
    if (rank == 1) {
      self.communicator->Abort(DataLoss("its disk is gone"));
      return;
    }
    self.Backward(0);
    const Status status = self.thread.Wait();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr("rank 1 stopped: its disk is gone"));
    self.Backward(1);
    EXPECT_EQ(self.thread.Wait().message(), status.message());  // for good
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, GradientSynchronizerTest, testing::ValuesIn(AllWorldKinds()),
                         [](const auto& info) { return info.param.name; });

TEST(CommunicationThreadTest, JobsRunInOrderAndNoneAfterTheFirstError) {
  const World world = MakeTcpWorld(1);
  const auto communicator =
      std::move(*Communicator::Create(world[0].get(), Topology::Blocks(1, 1), {}));
  CommunicationThread thread(communicator.get());
  std::vector<int> ran;
  for (int i = 0; i < 5; ++i) {
    thread.Submit([&ran, i](Communicator*) {
      ran.push_back(i);
      return i == 3 ? DataLoss("the third") : OkStatus();
    });
  }
  EXPECT_EQ(thread.Wait().message(), "the third");
  EXPECT_THAT(ran, testing::ElementsAre(0, 1, 2, 3));
  thread.Submit([&ran](Communicator*) {
    ran.push_back(9);
    return OkStatus();
  });
  EXPECT_EQ(thread.Wait().message(), "the third");
  EXPECT_EQ(ran.size(), 4U);
}

TEST(CommunicationThreadTest, AWaitForTheFirstJobsIsNotOneForTheOthers) {
  const World world = MakeTcpWorld(1);
  const auto communicator =
      std::move(*Communicator::Create(world[0].get(), Topology::Blocks(1, 1), {}));
  CommunicationThread thread(communicator.get());
  std::promise<void> used;
  int result = 0;
  const int64_t first = thread.Submit([&](Communicator*) {
    result = 7;
    return OkStatus();
  });
  thread.Submit([&](Communicator*) {
    used.get_future().wait();
    return OkStatus();
  });
  EXPECT_TRUE(thread.WaitFor(first).ok());
  EXPECT_EQ(result, 7);
  EXPECT_FALSE(thread.idle());
  used.set_value();
  EXPECT_TRUE(thread.Wait().ok());
  EXPECT_TRUE(thread.idle());
  EXPECT_TRUE(thread.WaitFor(first).ok());
}

}  // namespace
}  // namespace ringtail
