// Communicator over every kind of world: what each call leaves on each rank, calls on two channels
// at once, and ranks that do not call the same.
#include "dist/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <utility>

#include "dist/transport/in_process.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Communicator> Make(Transport* transport, Channel channel = Channel::kTrainer,
                                   const std::string& algorithm = "ring") {
  return std::move(*Communicator::Create(transport, Topology::Blocks(transport->world_size(), 1),
                                         {.algorithm = algorithm, .channel = channel}));
}

class CommunicatorTest : public testing::TestWithParam<WorldKind> {};

TEST_P(CommunicatorTest, EveryCallLeavesOnEachRankWhatItSays) {
  for (const int size : {1, 2, 3, 5}) {
    const World world = GetParam().make(size);
    OnEveryRank(size, [&](int rank) {
      const auto ranks = Make(world[rank].get());
      std::vector<float> array(7, static_cast<float>(rank + 1));
      EXPECT_TRUE(ranks->AllReduce(std::span(array)).ok());
      EXPECT_THAT(array, Each(static_cast<float>(size * (size + 1)) / 2));

      std::vector<int64_t> ones(7, 1);
      EXPECT_TRUE(ranks->ReduceScatter(std::span(ones)).ok());
      const ElementRange mine = EvenPart(7, size, rank);
      for (int64_t i = mine.offset; i < mine.end(); ++i) EXPECT_EQ(ones[i], size);

      std::vector<double> own(size);
      own[rank] = 0.5 + rank;
      EXPECT_TRUE(ranks->AllGather(std::span(own)).ok());
      for (int r = 0; r < size; ++r) EXPECT_EQ(own[r], 0.5 + r);

      std::vector<int64_t> blocks(2 * size);
      for (int r = 0; r < size; ++r) blocks[r] = 100 * rank + r;
      EXPECT_TRUE(ranks->AllToAll(std::span(blocks)).ok());
      for (int r = 0; r < size; ++r) {
        if (r == rank) continue;
        EXPECT_EQ(blocks[size + r], 100 * r + rank);
      }

      const int root = size - 1;
      std::vector<float> copied(5, static_cast<float>(rank));
      EXPECT_TRUE(ranks->Copy(std::span(copied), root, 0).ok());
      EXPECT_THAT(copied, Each(static_cast<float>(rank == 0 ? root : rank)));
      std::vector<int64_t> numbers(3, rank);
      EXPECT_TRUE(ranks->Broadcast(std::span(numbers), root).ok());
      EXPECT_THAT(numbers, Each(root));

      EXPECT_TRUE(ranks->Barrier().ok());
    });
  }
}

TEST_P(CommunicatorTest, TextsOfAnyLength) {
  const World world = GetParam().make(3);
  OnEveryRank(3, [&](int rank) {
    const auto ranks = Make(world[rank].get());
    const std::string text(rank * 1000, static_cast<char>('a' + rank));
    const auto all = ranks->AllGatherText(text, 2000);
    ASSERT_TRUE(all.ok()) << all.status().ToString();
    EXPECT_THAT(*all, ElementsAre("", std::string(1000, 'b'), std::string(2000, 'c')));
    const Status too_long = ranks->BroadcastText(text, 2, 1999).status();
    EXPECT_EQ(too_long.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(too_long.message(), HasSubstr("rank 2 would send 2000 bytes"));
    EXPECT_THAT(ranks->AllGatherText(text, 1999).status().message(),
                HasSubstr("rank 2 would send 2000 bytes where at most 1999 are expected"));
    const auto nothing = ranks->AllGatherText("", 0);
    ASSERT_TRUE(nothing.ok()) << nothing.status().ToString();
    EXPECT_THAT(*nothing, ElementsAre("", "", ""));
  });
}

// The threads of a rank may take turns as they like.
TEST_P(CommunicatorTest, ChannelsDoNotDisturbEachOther) {
  const World world = GetParam().make(3);
  OnEveryRank(3, [&](int rank) {
    const auto call = [&](Channel channel, int64_t count, float value) {
      const auto ranks = Make(world[rank].get(), channel);
      for (int i = 0; i < 20; ++i) {
        std::vector<float> array(count, value);
        EXPECT_TRUE(ranks->AllReduce(std::span(array)).ok());
        EXPECT_THAT(array, Each(3 * value));
      }
    };
    std::jthread gradients(call, Channel::kGradients, 1000, 2.0F);
    call(Channel::kTrainer, 5, 1.0F);
  });
}

TEST_P(CommunicatorTest, OtherCallsOnAnotherRankAreAnErrorOnAll) {
  const World world = GetParam().make(2);
  OnEveryRank(2, [&](int rank) {
    const auto ranks = Make(world[rank].get());
    std::vector<float> array(rank == 0 ? 1000 : 1001);
    EXPECT_FALSE(ranks->AllReduce(std::span(array)).ok());
    EXPECT_FALSE(ranks->Barrier().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, CommunicatorTest, testing::ValuesIn(AllWorldKinds()),
                         [](const auto& info) { return info.param.name; });

TEST(CommunicatorOptionsTest, SaysWhatItTakesAndWhy) {
  const World world = MakeInProcessWorld(4);
  const auto ranks =
      Make(world[0].get(), Channel::kTrainer, "recursive_doubling:0-4096;ring:4096-");
  EXPECT_EQ(ranks->Choice(1024).algorithm->name, "recursive_doubling");
  EXPECT_THAT(ranks->Choice(8192).why, HasSubstr("ring"));
  const auto unknown =
      Communicator::Create(world[1].get(), Topology::Blocks(4, 1), {.algorithm = "rings"});
  EXPECT_EQ(unknown.status().code(), StatusCode::kInvalidArgument);
}

TEST(CommunicatorOptionsTest, GathersWhatIsShortInFewRounds) {
  for (const auto& [size, rounds] : {std::pair(2, 1), {5, 3}, {8, 3}, {9, 4}}) {
    const World world = MakeInProcessWorld(size);
    OnEveryRank(size, [&, size = size, rounds = rounds](int rank) {
      const auto ranks = Make(world[rank].get(), Channel::kTrainer, "ring");
      // From how many ranks something has come since the last call.
      std::vector<uint64_t> before(size);
      const auto senders = [&] {
        int count = 0;
        for (int peer = 0; peer < size; ++peer) {
          if (peer == rank) continue;
          const uint64_t now = world[rank]->traffic(peer).received;
          count += std::exchange(before[peer], now) != now ? 1 : 0;
        }
        return count;
      };
      std::vector<std::byte> array(88 * size, std::byte(rank));
      EXPECT_TRUE(ranks->AllGather(std::span(array)).ok());
      // Not from the same one neighbour size - 1 times.
      EXPECT_EQ(senders(), rounds);
      for (int r = 0; r < size; ++r) EXPECT_EQ(array[88 * r + 87], std::byte(r));

      EXPECT_TRUE(ranks->AllGatherText(std::string(100, 'a'), 100).ok());
      EXPECT_EQ(senders(), rounds);
    });
  }
}

TEST(CommunicatorOptionsTest, CountsWhatItSends) {
  const World world = MakeInProcessWorld(2);
  OnEveryRank(2, [&](int rank) {
    const auto ranks = Make(world[rank].get());
    std::vector<float> array(1000);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(ranks->AllReduce(std::span(array)).ok());
    EXPECT_EQ(ranks->sent_bytes(), 3 * 4000);  // 2 (N - 1) / N of the bytes
  });
}

}  // namespace
}  // namespace ringtail
