#include "dist/membership/roster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RankFacts Facts(int rank, const std::string& own_address = "10.0.0.1",
                const std::string& master_address = "10.0.0.9") {
  return {.rank = rank,
          .world_size = 4,
          .instance = "instance " + std::to_string(rank),
          .host_name = "node" + std::to_string(rank),
          .host_key = "",
          .pid = 100 + rank,
          .own_address = own_address,
          .master_address = master_address,
          .fingerprint = {{"seed", "1"}, {"batch", "64"}}};
}

TEST(Roster, IsCompleteOnceAllAreThere) {
  Roster roster(Facts(0));
  for (const int rank : {3, 0, 2, 1}) {
    EXPECT_FALSE(roster.Complete());
    EXPECT_TRUE(roster.Add(Facts(rank)).ok());
  }
  EXPECT_TRUE(roster.Complete());
  EXPECT_FALSE(roster.AllListening());
  for (int rank = 0; rank < 4; ++rank) roster.SetListening(rank, "a" + std::to_string(rank));
  EXPECT_TRUE(roster.AllListening());
  const WorldTable table = roster.Table(7, "salt");
  EXPECT_THAT(table.addresses, ElementsAre("a0", "a1", "a2", "a3"));
  EXPECT_EQ(table.ranks[3].host_name, "node3");
}

TEST(Roster, NamesBothRanksAndValuesOfADisagreement) {
  Roster roster(Facts(0));
  RankFacts other = Facts(2);
  other.fingerprint = {{"batch", "32"}, {"seed", "1"}};
  EXPECT_EQ(roster.Add(other).message(),
            "rank 0 (node0, pid 100) and rank 2 (node2, pid 102) disagree about batch: rank 0 has "
            "64, rank 2 has 32");
  other = Facts(1);
  other.world_size = 3;
  EXPECT_THAT(roster.Add(other).message(), HasSubstr("rank 1 (node1, pid 101) for a world of 3"));
  EXPECT_EQ(roster.Find(1), nullptr);
}

TEST(Roster, NamesBothProcessesWithOneNumber) {
  Roster roster(Facts(0));
  EXPECT_TRUE(roster.Add(Facts(2)).ok());
  EXPECT_TRUE(roster.Add(Facts(2)).ok()) << "the same process again";
  RankFacts other = Facts(2);
  other.instance = "another";
  other.host_name = "node7";
  EXPECT_EQ(roster.Add(other).message(),
            "two processes say that they are rank 2: node2, pid 102 and node7, pid 102; each must "
            "have a number of its own");
  other = Facts(0);
  other.instance = "not the one that runs the rendezvous";
  EXPECT_EQ(roster.Add(other).code(), StatusCode::kAlreadyExists);
}

TEST(Roster, NamesWhoIsMissingAndWhoIsThere) {
  Roster roster(Facts(0));
  const std::chrono::milliseconds waited(1500);
  EXPECT_EQ(roster.Missing(waited).message(),
            "ranks 0, 1, 2, 3 of 4 have not come within 1.5 s; no rank is here");
  EXPECT_TRUE(roster.Add(Facts(0)).ok());
  EXPECT_TRUE(roster.Add(Facts(1)).ok());
  EXPECT_EQ(roster.Missing(waited).message(),
            "ranks 2, 3 of 4 have not come within 1.5 s; here are 0 (node0), 1 (node1)");
  EXPECT_TRUE(roster.Add(Facts(2)).ok());
  roster.Remove(Facts(1));
  EXPECT_TRUE(roster.Add(Facts(3)).ok());
  EXPECT_EQ(
      roster.Missing(waited).message(),
      "rank 1 (which came from node1, pid 101 and left again) of 4 has not come within 1.5 s; "
      "here are 0 (node0), 2 (node2), 3 (node3)");
  EXPECT_TRUE(roster.Add(Facts(1)).ok());
  for (const int rank : {0, 1, 3}) roster.SetListening(rank, "somewhere");
  EXPECT_THAT(roster.Missing(waited).message(), HasSubstr("where to dial 2 (node2) is not known"));
}

TEST(Roster, WhoHasBeenReplacedRemovesNobody) {
  Roster roster(Facts(0));
  EXPECT_TRUE(roster.Add(Facts(1)).ok());
  RankFacts earlier = Facts(1);
  earlier.instance = "earlier";
  roster.Remove(earlier);
  EXPECT_NE(roster.Find(1), nullptr);
}

// Debian's 127.0.1.1: ranks on rank 0's host come through loopback, the others do not.
TEST(Roster, RanksListenWhereTheOthersCanReachThem) {
  Roster local(Facts(0));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_TRUE(local.Add(Facts(rank, "127.0.0.1", "127.0.1.1")).ok());
  }
  EXPECT_EQ(local.ListenAt(0), "127.0.0.1");
  EXPECT_EQ(local.ListenAt(3), "127.0.0.1");

  Roster mixed(Facts(0));
  for (const int rank : {0, 1}) EXPECT_TRUE(mixed.Add(Facts(rank, "127.0.0.1", "127.0.1.1")).ok());
  EXPECT_TRUE(mixed.Add(Facts(2, "10.0.0.2", "10.0.0.1")).ok());
  EXPECT_TRUE(mixed.Add(Facts(3, "10.0.0.3", "10.0.0.1")).ok());
  EXPECT_EQ(mixed.ListenAt(0), "10.0.0.1");
  EXPECT_EQ(mixed.ListenAt(1), "10.0.0.1");
  EXPECT_EQ(mixed.ListenAt(2), "10.0.0.2");
  EXPECT_EQ(mixed.ListenAt(3), "10.0.0.3");
}

TEST(RankFacts, GoThroughBytesUnchangedAndAreChecked) {
  RankFacts facts = Facts(3);
  facts.generation = 9;
  facts.about = {{"cores", "2"}, {"not UTF-8", "\xFF\xFE"}};
  const StatusOr<RankFacts> read = DecodeFacts(EncodeFacts(facts));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->Describe(), "rank 3 (node3, pid 103)");
  EXPECT_EQ(read->generation, 9U);
  EXPECT_EQ(read->fingerprint, facts.fingerprint);
  EXPECT_EQ(read->about, facts.about);

  facts.rank = 4;
  EXPECT_FALSE(DecodeFacts(EncodeFacts(facts)).ok());
  facts = Facts(0);
  facts.world_size = kMaxWorldSize + 1;
  EXPECT_FALSE(DecodeFacts(EncodeFacts(facts)).ok());
  facts = Facts(0);
  facts.host_name = std::string(2000, 'x');
  EXPECT_FALSE(DecodeFacts(EncodeFacts(facts)).ok());
  facts = Facts(0);
  facts.about = {{"twice", "1"}, {"twice", "2"}};
  EXPECT_FALSE(DecodeFacts(EncodeFacts(facts)).ok());
  EXPECT_FALSE(DecodeFacts("\xFF").ok());
}

TEST(WorldTable, MustHaveEveryRankOnce) {
  RankFacts zero = Facts(0), one = Facts(1);
  zero.world_size = one.world_size = 2;
  WorldTable table{.generation = 3, .salt = "s", .ranks = {zero, one}, .addresses = {"a", "b"}};
  const StatusOr<WorldTable> read = DecodeWorldTable(EncodeWorldTable(table));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_THAT(read->addresses, ElementsAre("a", "b"));
  EXPECT_TRUE(read->ranks[0].fingerprint.empty());
  table.ranks = {one, zero};
  EXPECT_FALSE(DecodeWorldTable(EncodeWorldTable(table)).ok());
  table.ranks = {zero};
  EXPECT_FALSE(DecodeWorldTable(EncodeWorldTable(table)).ok());
}

TEST(CompareFingerprints, OrderMattersNot) {
  EXPECT_FALSE(CompareFingerprints({{"a", "1"}, {"b", "2"}}, {{"b", "2"}, {"a", "1"}}).has_value());
  EXPECT_FALSE(CompareFingerprints({}, {}).has_value());
}

TEST(CompareFingerprints, FindsTheFirstAndNamesTheOthers) {
  const auto what = CompareFingerprints({{"a", "1"}, {"b", "2"}, {"c", "3"}},
                                        {{"a", "1"}, {"b", "x"}, {"d", "4"}});
  ASSERT_TRUE(what.has_value());
  EXPECT_EQ(what->name, "b");
  EXPECT_EQ(what->expected, "2");
  EXPECT_EQ(what->found, "x");
  EXPECT_THAT(what->others, ElementsAre("c", "d"));
}

TEST(CheckFields, RefusesWhatCannotBeSent) {
  EXPECT_TRUE(CheckFields({{"a", ""}, {"b", std::string(kMaxFieldValueBytes, 'x')}}).ok());
  EXPECT_FALSE(CheckFields({{"", "1"}}).ok());
  EXPECT_FALSE(CheckFields({{std::string(kMaxFieldNameBytes + 1, 'n'), "1"}}).ok());
  EXPECT_THAT(CheckFields({{"list", std::string(kMaxFieldValueBytes + 1, 'x')}}).message(),
              HasSubstr("say a hash of it"));
  FingerprintFields many;
  for (size_t i = 0; i <= kMaxFields; ++i) many.push_back({std::to_string(i), ""});
  EXPECT_FALSE(CheckFields(many).ok());
}

}  // namespace
}  // namespace ringtail
