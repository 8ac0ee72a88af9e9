// Worlds that form, and worlds that must not: what each rank is told.
#include "dist/membership/join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "dist/membership/identity/host_identity.h"
#include "tests/dist/membership/join_ranks.h"
#include "tests/testing/process.h"

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Me() { return HostName() + ", pid " + std::to_string(getpid()); }

TEST(JoinWorld, RanksFindEachOtherAndKnowAllOfEach) {
  const ReservedPort port;
  const auto ranks = JoinAll(4, port.number(), [](JoinOptions* options) {
    const int rank = options->identity.rank;
    options->host_key = rank % 2 == 0 ? "even" : "odd";
    options->about = {{"cores", std::to_string(rank + 1)}};
    options->fingerprint = {{"train.batch", "64"}, {"seed", "7"}};
  });
  ExpectWorldWorks(ranks);
  for (int rank = 0; rank < 4; ++rank) {
    const JoinedWorld& world = *ranks[rank];
    EXPECT_EQ(world.rank, rank);
    EXPECT_EQ(world.generation, ranks[0]->generation);
    EXPECT_NE(world.generation, 0U);
    EXPECT_THAT(world.topology.host_of_rank, ElementsAre(0, 1, 0, 1));
    ASSERT_EQ(world.ranks.size(), 4U);
    EXPECT_THAT(world.ranks[3].address, StartsWith("127.0.0.1:"));
    EXPECT_EQ(world.ranks[3].host, 1);
    EXPECT_THAT(world.ranks[3].about, ElementsAre(FingerprintField{"cores", "4"}));
    EXPECT_EQ(world.Describe(3), "rank 3 (" + Me() + ")");
    EXPECT_EQ(world.rendezvous != nullptr, rank == 0);
  }
}

TEST(JoinWorld, AWorldOfOneNeedsNobody) {
  JoinOptions options;
  options.about = {{"cores", "2"}};
  const StatusOr<JoinedWorld> world = JoinWorld(options);
  ASSERT_TRUE(world.ok()) << world.status().ToString();
  EXPECT_EQ(world->transport->world_size(), 1);
  EXPECT_EQ(world->Describe(0), "rank 0 (" + Me() + ")");
}

TEST(JoinWorld, LongFactsComeInPieces) {
  const ReservedPort port;
  const auto ranks = JoinAll(2, port.number(), [](JoinOptions* options) {
    for (int i = 0; i < 20; ++i) {
      options->about.push_back({"field " + std::to_string(i), std::string(4096, 'x')});
    }
  });
  ExpectWorldWorks(ranks);
  EXPECT_EQ(ranks[1]->ranks[0].about.size(), 20U);
}

// ---- disagreements ------------------------------------------------------------------------------

struct Difference {
  std::string name;
  std::function<void(JoinOptions*)> make;
  std::string sentence;  // all of what is said about it
};
void PrintTo(const Difference& difference, std::ostream* out) { *out << difference.name; }

const FingerprintFields kFields{{"net", "5e1f"}, {"train.batch", "64"},     {"optimizer.lr", "0.1"},
                                {"seed", "7"},   {"data.manifest", "ab12"}, {"dtype", "f32"},
                                {"isa", "avx2"}, {"checkpoint.step", "100"}};

std::vector<Difference> Differences() {
  std::vector<Difference> differences;
  for (size_t i = 0; i < kFields.size(); ++i) {
    differences.push_back(
        {kFields[i].name, [i](JoinOptions* options) { options->fingerprint[i].value = "other"; },
         "about " + kFields[i].name + ": rank 0 has " + kFields[i].value + ", rank 2 has other"});
  }
  differences.push_back(
      {"build", [](JoinOptions* options) { options->build = "9.9.9"; },
       "about build version: rank 0 has " + BuildVersion() + ", rank 2 has 9.9.9"});
  differences.push_back({"missing field",
                         [](JoinOptions* options) { options->fingerprint.pop_back(); },
                         "about checkpoint.step: rank 0 has 100, rank 2 has (none)"});
  differences.push_back({"extra field",
                         [](JoinOptions* options) {
                           options->fingerprint.push_back({"mixup", "on"});
                         },
                         "about mixup: rank 0 has (none), rank 2 has on"});
  differences.push_back(
      {"two fields",
       [](JoinOptions* options) {
         options->fingerprint[0].value = "1";
         options->fingerprint[3].value = "8";
       },
       "about net: rank 0 has 5e1f, rank 2 has 1; they also disagree about seed"});
  return differences;
}

class JoinDisagreement : public ::testing::TestWithParam<Difference> {};
INSTANTIATE_TEST_SUITE_P(All, JoinDisagreement, ::testing::ValuesIn(Differences()));

TEST_P(JoinDisagreement, IsToldToAllRanksWithBothValues) {
  const ReservedPort port;
  const auto ranks = JoinAll(4, port.number(), [](JoinOptions* options) {
    options->fingerprint = kFields;
    if (options->identity.rank == 2) GetParam().make(options);
  });
  for (const auto& rank : ranks) {
    ASSERT_FALSE(rank.ok());
    EXPECT_EQ(rank.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(rank.status().message(),
              "rank 0 (" + Me() + ") and rank 2 (" + Me() + ") disagree " + GetParam().sentence);
  }
}

TEST(JoinWorld, AnotherWorldSizeIsToldToAllRanks) {
  const ReservedPort port;
  const auto ranks = JoinAll(3, port.number(), [](JoinOptions* options) {
    if (options->identity.rank == 1) options->identity.world_size = 5;
  });
  for (const auto& rank : ranks) {
    ASSERT_FALSE(rank.ok());
    EXPECT_EQ(rank.status().message(),
              "rank 0 (" + Me() + ") was started for a world of 3 and rank 1 (" + Me() +
                  ") for a world of 5: the world size must be the same on all ranks");
  }
}

TEST(JoinWorld, TwoProcessesWithOneNumberAreBothNamed) {
  const ReservedPort port;
  std::vector<JoinOptions> options;
  for (const int rank : {0, 1, 1}) options.push_back(TestJoinOptions(rank, 3, port.number()));
  options[0].refusal_grace = std::chrono::seconds(3);  // in full: rank 2 never comes
  for (const auto& rank : JoinAll(options)) {
    ASSERT_FALSE(rank.ok());
    EXPECT_EQ(rank.status().message(), "two processes say that they are rank 1: " + Me() + " and " +
                                           Me() + "; each must have a number of its own");
  }
}

TEST(JoinWorld, WhoComesTooLateIsToldSo) {
  const ReservedPort port;
  const auto ranks = JoinAll(2, port.number());
  ExpectWorldWorks(ranks);
  const auto late = JoinWorld(TestJoinOptions(1, 2, port.number()));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.status().message(), "rank 1 (" + Me() +
                                         ") comes too late: the job has all its 2 ranks, and rank "
                                         "1 is " +
                                         Me());
  ExpectWorldWorks(ranks);
}

TEST(JoinWorld, ARankOfAnEarlierLifeOfTheJobDisturbsNobody) {
  const ReservedPort port;
  std::vector<JoinOptions> options;
  for (const int rank : {0, 1}) options.push_back(TestJoinOptions(rank, 2, port.number()));
  options[0].generation = 8;
  options[1].generation = 7;
  const std::jthread zero([&] {
    const auto world = JoinWorld(options[0]);
    ASSERT_TRUE(world.ok()) << world.status().ToString();
    EXPECT_EQ(world->generation, 8U);
  });
  const auto zombie = JoinWorld(options[1]);
  ASSERT_FALSE(zombie.ok());
  EXPECT_EQ(zombie.status().message(), "this is generation 8 of the job, not 7");
  options[1].generation = 0;
  const auto right = JoinWorld(options[1]);
  EXPECT_TRUE(right.ok()) << right.status().ToString();
}

TEST(JoinWorld, AnotherTokenIsTurnedAwayAndDisturbsNobody) {
  const ReservedPort port;
  const std::jthread zero([&] {
    const auto world = JoinWorld(TestJoinOptions(0, 2, port.number()));
    EXPECT_TRUE(world.ok()) << world.status().ToString();
  });
  JoinOptions options = TestJoinOptions(1, 2, port.number());
  options.token = "another token, of another job";
  const auto wrong = JoinWorld(options);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(wrong.status().message(),
              AllOf(StartsWith("rank 0 at 127.0.0.1:" + std::to_string(port.number()) +
                               " turned rank 1 away, because it has another token"),
                    HasSubstr("--token-file")));
  EXPECT_TRUE(JoinWorld(TestJoinOptions(1, 2, port.number())).ok());
}

// ---- ranks and hosts that are not there ---------------------------------------------------------

TEST(JoinWorld, AMissingRankIsNamedToAllRanks) {
  // On a loaded machine more than the missing one may be late: then once more, with more time.
  for (std::chrono::seconds timeout(1);; timeout *= 4) {
    const ReservedPort port;
    std::vector<JoinOptions> options;
    for (const int rank : {0, 1, 3}) {
      options.push_back(TestJoinOptions(rank, 4, port.number()));
      options.back().join_timeout = timeout;
      options.back().refusal_grace = std::chrono::milliseconds(0);
    }
    const auto ranks = JoinAll(options);
    for (const auto& rank : ranks) ASSERT_FALSE(rank.ok());
    const std::string expected = "rank 2 of 4 has not come within " +
                                 std::to_string(timeout.count()) + " s; here are 0 (" + HostName() +
                                 "), 1 (" + HostName() + "), 3 (" + HostName() + ")";
    const bool all_came = ranks[0].status().message() == expected &&
                          ranks[1].status().message() == ranks[0].status().message() &&
                          ranks[2].status().message() == ranks[0].status().message();
    if (!all_came && timeout < std::chrono::minutes(1)) continue;
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank.status().message(), expected);
      EXPECT_EQ(rank.status().code(), StatusCode::kDeadlineExceeded);
    }
    break;
  }
}

TEST(JoinWorld, NobodyAtTheMastersPortIsToldAfterTheJoinTimeout) {
  const ReservedPort port;
  JoinOptions options = TestJoinOptions(1, 2, port.number());
  options.join_timeout = std::chrono::milliseconds(300);
  const auto rank = JoinWorld(options);
  ASSERT_FALSE(rank.ok());
  EXPECT_EQ(rank.status().message(),
            "rank 1 has found no rank 0 at 127.0.0.1:" + std::to_string(port.number()) +
                " within 0.3 s: nothing listens there: 127.0.0.1: "
                "Connection refused");
}

TEST(JoinWorld, AnUnknownMasterIsToldSoon) {
  for (const int rank : {0, 1}) {
    JoinOptions options = TestJoinOptions(rank, 2, 29500);
    options.identity.master_address = "no-such-host.invalid";
    options.security.insecure = true;
    options.name_timeout = std::chrono::milliseconds(300);
    const auto world = JoinWorld(options);
    ASSERT_FALSE(world.ok());
    EXPECT_EQ(world.status().code(), StatusCode::kNotFound);
    EXPECT_THAT(world.status().message(), AllOf(HasSubstr("no-such-host.invalid"),
                                                HasSubstr("is MASTER_ADDR (or --master) right?")));
  }
}

TEST(JoinWorld, RankZeroMustRunWhereItsAddressIs) {
  JoinOptions options = TestJoinOptions(0, 2, 29500);
  options.identity.master_address = "192.0.2.1";  // of no host: RFC 5737
  options.security.insecure = true;
  const auto world = JoinWorld(options);
  ASSERT_FALSE(world.ok());
  EXPECT_THAT(world.status().message(), StartsWith("the address of rank 0, 192.0.2.1, is none of "
                                                   "this host, where rank 0 runs"));
}

TEST(JoinWorld, APortInUseNamesWhoHasIt) {
  const ReservedPort port;
  const auto other_job = JoinAll(2, port.number());
  ExpectWorldWorks(other_job);
  const auto second = JoinWorld(TestJoinOptions(0, 2, port.number()));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists) << "no other rank's fault";
  EXPECT_THAT(
      second.status().message(),
      AllOf(StartsWith("rank 0 cannot listen at 127.0.0.1:" + std::to_string(port.number()) +
                       ": pid " + std::to_string(getpid()) + " ("),
            HasSubstr("choose another port")));
}

TEST(JoinWorld, IdentitiesThatCannotBeAreRefused) {
  JoinOptions options = TestJoinOptions(4, 4, 29500);
  EXPECT_THAT(JoinWorld(options).status().message(), HasSubstr("rank 4 of 4 (test) cannot be"));
  options = TestJoinOptions(0, 4, 29500);
  options.identity.master_address = "";
  EXPECT_THAT(JoinWorld(options).status().message(), HasSubstr("MASTER_ADDR"));
  options = TestJoinOptions(0, 4, 70000);
  EXPECT_THAT(JoinWorld(options).status().message(), HasSubstr("MASTER_PORT"));
}

TEST(JoinWorld, WorksOverIPv6) {
  const ReservedPort port;
  const auto ranks = JoinAll(
      2, port.number(), [](JoinOptions* options) { options->identity.master_address = "::1"; });
  if (!ranks[0].ok() &&
      ranks[0].status().message().find("none of this host") != std::string::npos) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  ExpectWorldWorks(ranks);
  EXPECT_THAT(ranks[0]->ranks[1].address, StartsWith("[::1]:"));
}

// ---- processes: tests/dist/membership/join_rank_main.cc -----------------------------------------

std::vector<std::string> Worker(int rank, int world_size, int port) {
  return {std::string(RT_BINARY_DIR) + "/tests/dist_join_rank_main", std::to_string(rank),
          std::to_string(world_size), "127.0.0.1:" + std::to_string(port)};
}

constexpr char kToken[] = "token-0123456789abcdef-of-this-test";

// Everything that `ps` could show.
std::string AllCommandLines() {
  return RunProcess({"sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"}).out;
}

TEST(JoinProcesses, JoinWithATokenThatNobodySees) {
  const ReservedPort port;
  const std::vector<std::string> environment{std::string("RINGTAIL_TOKEN=") + kToken};
  ChildProcess zero(Worker(0, 2, port.number()), environment);
  ChildProcess one(Worker(1, 2, port.number()), environment);
  for (ChildProcess* process : {&zero, &one}) {
    EXPECT_EQ(process->ReadLine(), "joining");
    EXPECT_EQ(process->ReadLine(), "joined 2 ranks on 1 hosts");
  }
  const std::string command_lines = AllCommandLines();
  EXPECT_THAT(command_lines, HasSubstr("dist_join_rank_main"));
  EXPECT_EQ(command_lines.find(kToken), std::string::npos);
  for (const ChildProcess* process : {&zero, &one}) process->Signal(SIGTERM);
  for (ChildProcess* process : {&zero, &one}) {
    const ProcessResult result = process->Wait();
    EXPECT_EQ((result.out + result.err).find(kToken), std::string::npos);
  }
}

TEST(JoinProcesses, AWrongTokenIsInNobodysLog) {
  const ReservedPort port;
  ChildProcess zero(Worker(0, 2, port.number()), {std::string("RINGTAIL_TOKEN=") + kToken});
  const std::string wrong = std::string(kToken) + "-not";
  const ProcessResult one = RunProcess(Worker(1, 2, port.number()), {"RINGTAIL_TOKEN=" + wrong});
  EXPECT_EQ(one.exit_code, 1);
  EXPECT_THAT(one.err, HasSubstr("because it has another token"));
  EXPECT_EQ(one.err.find(kToken), std::string::npos);
  zero.Signal(SIGTERM);
  const ProcessResult result = zero.Wait();
  EXPECT_THAT(result.err, AllOf(HasSubstr("turned away ipv4:127.0.0.1:"),
                                HasSubstr("it does not have the job's token")));
  EXPECT_EQ(result.err.find(kToken), std::string::npos);
}

// Killed while it waits; its place is free again, and the rank that takes it is no duplicate.
TEST(JoinProcesses, ARankThatDiesWhileItWaitsCanComeAgain) {
  const ReservedPort port;
  const std::vector<std::string> environment{std::string("RINGTAIL_TOKEN=") + kToken};
  ChildProcess zero(Worker(0, 3, port.number()), environment);
  ChildProcess killed(Worker(1, 3, port.number()), environment);
  EXPECT_EQ(killed.ReadLine(), "joining");
  killed.Signal(SIGKILL);
  killed.Wait();
  ChildProcess one(Worker(1, 3, port.number()), environment);
  ChildProcess two(Worker(2, 3, port.number()), environment);
  for (ChildProcess* process : {&zero, &one, &two}) {
    EXPECT_EQ(process->ReadLine(), "joining");
    EXPECT_EQ(process->ReadLine(), "joined 3 ranks on 1 hosts");
  }
}

}  // namespace
}  // namespace ringtail
