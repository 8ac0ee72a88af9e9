// What is special about MPI; what every transport must do is in transport_test.cc, over
// LoopbackMpi.
#include "dist/transport/mpi/mpi_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/dist/test_world.h"
#include "tests/dist/transport/mpi/loopback_mpi.h"
#include "tests/testing/mpirun.h"

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const PeerTable kRankOne = {.rank = 1, .addresses = {"a:0", "a:0"}};

ProcessResult Mpirun(int ranks, const std::string& task) {
  return RunMpirun(ranks, {RT_BINARY_DIR "/tests/dist_mpi_rank_main", task});
}

TEST(MpiTransportTest, ExchangesMessagesOverTheRealMpi) {
  const ProcessResult result = Mpirun(3, "exchange");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(result.out, HasSubstr("rank " + std::to_string(rank) + ": all is well"));
  }
}

TEST(MpiTransportTest, ARankThatStopsTellsTheOthersWhy) {
  const ProcessResult result = Mpirun(3, "abort");
  for (const std::string rank : {"0", "2"}) {
    EXPECT_THAT(result.out, HasSubstr("rank " + rank +
                                      ": receiving 8 bytes from rank 1 (collective 0, step 0, "
                                      "segment 0): rank 1 stopped: rank 1 has had enough"))
        << result.err;
  }
}

TEST(MpiTransportTest, RanksThatMpiCountsOtherwiseAreRefused) {
  const ProcessResult result = Mpirun(2, "wrong_rank");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("but rank 0 of 2 to MPI; start the job with mpirun"));
}

TEST(MpiTransportTest, SaysWhyMpiCannotBeUsed) {
  const auto no_mpi = [](std::string* error) {
    *error = "there is none here";
    return std::unique_ptr<MpiPort>();
  };
  const Status status = ListenMpi("a:0", {}, no_mpi)->Connect(kRankOne).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "MPI cannot be used: there is none here");
}

TEST(MpiTransportTest, DoesNotWaitForEverForMpiToBegin) {
  const auto never = [](std::string*) -> std::unique_ptr<MpiPort> {
    pause();
    return nullptr;
  };
  const MpiLimits limits = {.connect = std::chrono::milliseconds(50)};
  const Status status = ListenMpi("a:0", limits, never)->Connect(kRankOne).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("50 ms"), HasSubstr("rank 1 waits in MPI_Init")));
}

TEST(MpiTransportTest, AnErrorOfMpiEndsTheWorldForAllRanks) {
  LoopbackMpi mpi(2);
  World world = JoinLoopbackMpi(&mpi, 2);
  CompletionQueue queue;
  std::vector<std::byte> memory(8);
  world[0]->Receive(1, {}, memory, {&queue, 0});
  mpi.Break(0, "MPI_Testsome: the network is down");
  EXPECT_THAT(Await(&queue, 1)[0].message(), HasSubstr("MPI_Testsome: the network is down"));
}

}  // namespace
}  // namespace ringtail
