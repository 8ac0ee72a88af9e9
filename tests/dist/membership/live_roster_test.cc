#include "dist/membership/live_roster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"

namespace ringtail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Kind = RosterChange::Kind;

// The drawing in live_roster.h.
TEST(LiveRosterTest, TellsWhoIsInAtEachGeneration) {
  LiveRoster roster(4);
  EXPECT_EQ(roster.generation(), 0);
  EXPECT_THAT(roster.members(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(*roster.Leave(2, 170, "lost rank 2"),
            (RosterChange{1, Kind::kLeft, 2, 170, "lost rank 2"}));
  EXPECT_THAT(roster.members(), ElementsAre(0, 1, 3));
  EXPECT_EQ(roster.Join(205), (RosterChange{2, Kind::kJoined, 4, 205, ""}));
  EXPECT_THAT(roster.members(), ElementsAre(0, 1, 3, 4));
  EXPECT_EQ(roster.generation(), 2);
  EXPECT_FALSE(roster.Leave(2, 300, "again")) << "it is out";
  EXPECT_FALSE(roster.Leave(7, 300, "never there"));
  EXPECT_EQ(roster.generation(), 2);
}

TEST(LiveRosterTest, LeaderAndSuccessorsMoveOn) {
  LiveRoster roster(3);
  EXPECT_EQ(roster.Successor(0), 1);
  EXPECT_EQ(roster.Successor(2), 0);
  roster.Leave(1, 5, "");
  EXPECT_EQ(roster.Successor(0), 2);
  EXPECT_EQ(roster.Successor(1), 2) << "of one that is not in any more";
  roster.Leave(0, 5, "");
  EXPECT_EQ(roster.leader(), 2);
  EXPECT_FALSE(roster.Successor(2)) << "it is alone";
  EXPECT_EQ(roster.Successor(1), 2);
}

TEST(LiveRosterTest, RefusesWhatDoesNotFollow) {
  LiveRoster roster(3);
  ASSERT_TRUE(roster.Apply({1, Kind::kLeft, 1, 10, "lost"}).ok());
  const auto refused = [&](const RosterChange& change) {
    const Status status = roster.Apply(change);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_EQ(roster.generation(), 1);
    EXPECT_THAT(roster.members(), ElementsAre(0, 2));
    return status.message();
  };
  EXPECT_TRUE(roster.Apply({1, Kind::kLeft, 1, 10, "lost"}).ok()) << "it is known";
  EXPECT_THAT(refused({1, Kind::kLeft, 2, 10, "lost"}), HasSubstr("another change"));
  EXPECT_EQ(refused({3, Kind::kLeft, 2, 10, ""}),
            "change 3 of the ranks that take part (2 left at version 10): this rank knows 1");
  EXPECT_THAT(refused({0, Kind::kLeft, 2, 10, ""}), HasSubstr("this rank knows 1"));
  EXPECT_THAT(refused({2, Kind::kLeft, 1, 10, ""}), HasSubstr("it does not take part"));
  EXPECT_THAT(refused({2, Kind::kLeft, -1, 10, ""}), HasSubstr("it does not take part"));
  EXPECT_THAT(refused({2, Kind::kLeft, 2, 9, ""}), HasSubstr("version 10 is behind"));
  EXPECT_THAT(refused({2, Kind::kJoined, 1, 10, ""}), HasSubstr("rank 3 is next"));
  EXPECT_THAT(refused({2, static_cast<Kind>(9), 2, 10, ""}), HasSubstr("no such kind"));
  LiveRoster alone(1);
  EXPECT_THAT(alone.Apply({1, Kind::kLeft, 0, 0, ""}).message(), HasSubstr("the last one"));
}

// A leader and followers against sets that are made anew from all events so far. What the leader
// tells is delayed, lost and told twice; a follower that is behind asks.
TEST(LiveRosterTest, RandomStoriesEndWithOneRosterEverywhere) {
  for (uint64_t story = 0; story < 2000; ++story) {
    Rng random(RngKey(11).With(story));
    const int ranks = 1 + static_cast<int>(random.Below(6));
    LiveRoster leader(ranks);
    std::vector<LiveRoster> followers(2, LiveRoster(ranks));
    std::vector<std::vector<RosterChange>> under_way(followers.size());
    std::vector<std::pair<bool, int>> events;  // joined, rank
    int next = ranks;
    uint64_t version = 0;
    for (int i = 0; i < 40; ++i) {
      version += random.Below(3);
      std::optional<RosterChange> change;
      if (random.Below(4) == 0) {
        change = leader.Join(version);
        events.emplace_back(true, next++);
      } else if (leader.members().size() > 1) {
        const int rank = static_cast<int>(random.Below(next + 1));
        const bool in = leader.Has(rank);
        change = leader.Leave(rank, version, "cause " + std::to_string(i));
        ASSERT_EQ(change.has_value(), in);
        if (in) events.emplace_back(false, rank);
      }
      std::set<int> expected;
      for (int rank = 0; rank < ranks; ++rank) expected.insert(rank);
      for (const auto& [joined, rank] : events) {
        if (joined) {
          expected.insert(rank);
        } else {
          expected.erase(rank);
        }
      }
      ASSERT_EQ(leader.members(), expected);
      ASSERT_EQ(leader.generation(), events.size());
      for (size_t f = 0; f < followers.size(); ++f) {
        if (change && random.Below(3) > 0) under_way[f].push_back(*change);
        if (under_way[f].empty() || random.Below(2) == 0) continue;
        const RosterChange arrived = under_way[f].front();
        if (random.Below(4) > 0) under_way[f].erase(under_way[f].begin());
        const bool follows = arrived.generation <= followers[f].generation() + 1;
        ASSERT_EQ(followers[f].Apply(arrived).ok(), follows);
        if (follows) continue;
        for (const RosterChange& missed : leader.Since(followers[f].generation())) {
          ASSERT_TRUE(followers[f].Apply(missed).ok());
        }
        ASSERT_EQ(followers[f].members(), expected);
      }
    }
    for (LiveRoster& follower : followers) {
      for (const RosterChange& missed : leader.Since(follower.generation())) {
        ASSERT_TRUE(follower.Apply(missed).ok());
      }
      EXPECT_EQ(follower.members(), leader.members());
      EXPECT_THAT(leader.Since(follower.generation()), IsEmpty());
    }
  }
}

}  // namespace
}  // namespace ringtail
