// Communicator over every kind of world: what each call leaves on each rank, calls on two channels
// at once, groups that overlap, and ranks that make different calls.
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

std::unique_ptr<Communicator> Make(Transport* transport, Channel channel = Channel(),
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

// The threads of a rank may interleave in any way.
TEST_P(CommunicatorTest, ChannelsDoNotDisturbEachOther) {
  const World world = GetParam().make(3);
  OnEveryRank(3, [&](int rank) {
    ChannelAllocator channels;
    const auto call = [&](Channel channel, int64_t count, float value) {
      const auto ranks = Make(world[rank].get(), channel);
      for (int i = 0; i < 20; ++i) {
        std::vector<float> array(count, value);
        EXPECT_TRUE(ranks->AllReduce(std::span(array)).ok());
        EXPECT_THAT(array, Each(3 * value));
      }
    };
    std::jthread gradients(call, channels.Next(), 1000, 2.0F);
    call(channels.Next(), 5, 1.0F);
  });
}

TEST_P(CommunicatorTest, DifferentCallsAreAnErrorOnAllRanks) {
  const World world = GetParam().make(2);
  OnEveryRank(2, [&](int rank) {
    const auto ranks = Make(world[rank].get());
    std::vector<float> array(rank == 0 ? 1000 : 1001);
    EXPECT_FALSE(ranks->AllReduce(std::span(array)).ok());
    EXPECT_FALSE(ranks->Barrier().ok());
  });
}

std::vector<std::unique_ptr<Communicator>> MakeGroups(Transport* transport,
                                                      std::span<const RankGroup> groups) {
  ChannelAllocator channels;
  return std::move(*Communicator::CreateForGroups(transport,
                                                  Topology::Blocks(transport->world_size(), 2),
                                                  groups, {.algorithm = "auto"}, &channels));
}

// All calls over one group; `base` tells the groups apart.
void CallEverything(Communicator* group, float base) {
  const int size = group->world_size(), member = group->rank();
  for (const int64_t count : {1, 7, 3000}) {
    std::vector<float> array(count, base + static_cast<float>(member));
    EXPECT_TRUE(group->AllReduce(std::span(array)).ok());
    EXPECT_THAT(array,
                Each(static_cast<float>(size) * base + static_cast<float>(size * (size - 1)) / 2));
  }
  std::vector<double> own(size);
  own[member] = base + member;
  EXPECT_TRUE(group->AllGather(std::span(own)).ok());
  for (int i = 0; i < size; ++i) EXPECT_EQ(own[i], base + i);

  std::vector<float> blocks(2 * size, base + static_cast<float>(member));
  EXPECT_TRUE(group->AllToAll(std::span(blocks)).ok());
  for (int i = 0; i < size; ++i) {
    if (i == member) continue;
    EXPECT_EQ(blocks[size + i], base + static_cast<float>(i));
  }
  std::vector<float> root(3, base + static_cast<float>(member));
  EXPECT_TRUE(group->Broadcast(std::span(root), size - 1).ok());
  EXPECT_THAT(root, Each(base + static_cast<float>(size - 1)));
  std::vector<float> copied(3, base + static_cast<float>(member));
  EXPECT_TRUE(group->Copy(std::span(copied), 0, size - 1).ok());
  EXPECT_EQ(copied[0], base + static_cast<float>(member == size - 1 ? 0 : member));
  const auto texts = group->AllGatherText(std::string(member + 1, 'a'), 10);
  ASSERT_TRUE(texts.ok()) << texts.status().ToString();
  for (int i = 0; i < size; ++i) EXPECT_EQ((*texts)[i].size(), i + 1U);
  EXPECT_TRUE(group->Barrier().ok());
}

// Two halves, a pair across them in descending order, one rank alone and the whole world, all at
// the same time over one transport: each rank has a thread for each of its groups.
TEST_P(CommunicatorTest, GroupsThatOverlapAndCallAtTheSameTimeDoNotDisturbEachOther) {
  constexpr int kWorld = 5;
  const std::vector<RankGroup> groups = {RankGroup({0, 2, 4}), RankGroup({1, 3}), RankGroup({4, 1}),
                                         RankGroup({2}), RankGroup::World(kWorld)};
  const World world = GetParam().make(kWorld);
  OnEveryRank(kWorld, [&](int rank) {
    const auto communicators = MakeGroups(world[rank].get(), groups);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < groups.size(); ++i) {
      EXPECT_EQ(communicators[i] != nullptr, groups[i].MemberOf(rank).has_value());
      if (communicators[i] == nullptr) continue;
      EXPECT_EQ(communicators[i]->rank(), groups[i].MemberOf(rank));
      threads.emplace_back([ranks = communicators[i].get(), i] {
        for (int repetition = 0; repetition < 3; ++repetition) {
          CallEverything(ranks, 100.0F * static_cast<float>(i + 1));
        }
      });
    }
  });
}

TEST_P(CommunicatorTest, AnErrorInAGroupNamesRanksOfTheWorld) {
  const World world = GetParam().make(4);
  const std::vector<RankGroup> groups = {RankGroup({0, 1}), RankGroup({3, 2})};
  OnEveryRank(4, [&](int rank) {
    const auto communicators = MakeGroups(world[rank].get(), groups);
    if (rank < 2) return;
    const auto text = communicators[1]->BroadcastText("twelve bytes", 0, 10);
    EXPECT_THAT(text.status().message(), HasSubstr("rank 3 would send 12 bytes"));
    std::vector<float> array(rank == 2 ? 1000 : 1001);
    const Status status = communicators[1]->AllReduce(std::span(array));
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr(rank == 2 ? "rank 3" : "rank 2"));
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, CommunicatorTest, testing::ValuesIn(AllWorldKinds()),
                         [](const auto& info) { return info.param.name; });

TEST(CommunicatorOptionsTest, SaysWhatItChoosesAndWhy) {
  const World world = MakeInProcessWorld(4);
  const auto ranks = Make(world[0].get(), Channel(), "recursive_doubling:0-4096;ring:4096-");
  EXPECT_EQ(ranks->Choice(1024).algorithm->name, "recursive_doubling");
  EXPECT_THAT(ranks->Choice(8192).why, HasSubstr("ring"));
  const auto unknown =
      Communicator::Create(world[1].get(), Topology::Blocks(4, 1), {.algorithm = "rings"});
  EXPECT_EQ(unknown.status().code(), StatusCode::kInvalidArgument);
}

TEST(CommunicatorOptionsTest, GathersShortArraysInFewRounds) {
  for (const auto& [size, rounds] : {std::pair(2, 1), {5, 3}, {8, 3}, {9, 4}}) {
    const World world = MakeInProcessWorld(size);
    OnEveryRank(size, [&, size = size, rounds = rounds](int rank) {
      const auto ranks = Make(world[rank].get(), Channel(), "ring");
      // How many ranks have sent something since the last call.
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
      // And not one neighbour size - 1 times.
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
