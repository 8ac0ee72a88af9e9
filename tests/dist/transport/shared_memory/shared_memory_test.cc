// Shared memory: its ring and segments, which thread moves bytes when, and what is left behind.
// Hostile peers: shared_memory_hostile_test.cc. The contract of all transports: transport_test.cc.
#include "dist/transport/shared_memory/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/check.h"
#include "dist/membership/identity/host_identity.h"
#include "dist/transport/grpc/grpc_listener.h"
#include "dist/transport/routed_transport.h"
#include "tests/dist/test_world.h"
#include "tests/testing/process.h"

namespace ringtail {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

MessageLabel Label(uint64_t collective) { return {.tag = {.collective = collective}, .check = 7}; }

// Segments that this process has mapped, and has open.
int Mappings() {
  std::ifstream maps("/proc/self/maps");
  int found = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:ringtail") != std::string::npos) ++found;
  }
  return found;
}
int OpenFiles() {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (std::filesystem::read_symlink(entry, error).string().find("memfd:ringtail") !=
        std::string::npos) {
      ++found;
    }
  }
  return found;
}

// ---- the ring -----------------------------------------------------------------------------------

struct Ring {
  RingHeader header{};
  std::vector<std::byte> memory = std::vector<std::byte>(256);
  RingWriter writer{&header, memory};
  RingReader reader{&header, memory};
};

TEST(SharedRing, BytesComeOutAsTheyWentInAroundTheEnd) {
  Ring ring;
  for (int i = 0; i < 20; ++i) {
    const std::vector<std::byte> in = PatternBytes(100 + i, i);
    ASSERT_GE(*ring.writer.Room(), in.size());
    ring.writer.Put(in);
    EXPECT_EQ(*ring.reader.Available(), 0);  // before Publish there is nothing
    ring.writer.Publish();
    ASSERT_EQ(*ring.reader.Available(), in.size());
    const RingReader::Pieces pieces = ring.reader.Next(in.size());
    ByteCursor cursor(pieces);
    std::vector<std::byte> out(in.size());
    ASSERT_TRUE(cursor.Read(out));
    EXPECT_EQ(out, in);
    EXPECT_FALSE(ring.reader.Consume(in.size()));
    EXPECT_EQ(*ring.writer.Room(), 256);
  }
}

TEST(SharedRing, AWriterThatWaitsIsToBeRungWhenHalfOfItIsFree) {
  Ring ring;
  ring.writer.Put(PatternBytes(256, 1));
  ring.writer.Publish();
  EXPECT_EQ(*ring.writer.Room(), 0);
  ring.writer.AskForRoom();
  EXPECT_FALSE(ring.reader.Consume(127));
  EXPECT_TRUE(ring.reader.Consume(1));
  EXPECT_FALSE(ring.reader.Consume(100));  // it has been rung
}

TEST(SharedRing, CountsThatCannotBeAreErrors) {
  for (const uint64_t nonsense : {uint64_t{257}, uint64_t{1} << 63, UINT64_MAX}) {
    Ring ring;
    ring.header.head = nonsense;
    EXPECT_EQ(ring.reader.Available().status().code(), StatusCode::kDataLoss);
    ring.header.tail = nonsense;
    EXPECT_EQ(ring.writer.Room().status().code() == StatusCode::kDataLoss,
              0 - nonsense > 256);  // -1 would be one byte that waits
  }
}

// ---- segments -----------------------------------------------------------------------------------

TEST(SharedSegment, IsMappedByNameAndLeavesNothing) {
  const int before = OpenFiles();
  {
    const auto made = SharedSegment::Create(4 * kSegmentAlignment);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    const auto opened = SharedSegment::Open(made->name(), 4 * kSegmentAlignment);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    auto ours = made->Map(kSegmentAlignment, kSegmentAlignment);
    auto theirs = opened->Map(kSegmentAlignment, kSegmentAlignment);
    ASSERT_TRUE(ours.ok() && theirs.ok());
    ours->bytes()[5] = std::byte{42};
    EXPECT_EQ(theirs->bytes()[5], std::byte{42});
    EXPECT_NE(ftruncate(made->name().file, 0), 0);  // it cannot be truncated
  }
  EXPECT_EQ(OpenFiles(), before);
  EXPECT_EQ(Mappings(), 0);
}

TEST(SharedSegment, SomethingElseIsNotMapped) {
  const auto made = SharedSegment::Create(kSegmentAlignment);
  ASSERT_TRUE(made.ok());
  SegmentName name = made->name();
  EXPECT_THAT(SharedSegment::Open(name, kSegmentAlignment + 1).status().message(),
              HasSubstr("has 65536 bytes, and not 65537"));
  for (const std::string& key : {std::string(), std::string(16, 'x'), name.key + "x"}) {
    EXPECT_THAT(SharedSegment::Open({name.pid, name.file, key}, 1).status().message(),
                HasSubstr("does not have the key"));
  }
  EXPECT_FALSE(SharedSegment::Open({0, name.file, name.key}, 1).ok());
  EXPECT_FALSE(SharedSegment::Open({-1, name.file, name.key}, 1).ok());
  EXPECT_FALSE(SharedSegment::Open({INT64_MAX, name.file, name.key}, 1).ok());
  EXPECT_FALSE(SharedSegment::Open({name.pid, -1, name.key}, 1).ok());
  EXPECT_FALSE(SharedSegment::Open({name.pid, 1 << 20, name.key}, 1).ok());

  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int device = open("/dev/null", O_RDWR), file = open("/proc/self/exe", O_RDONLY);
  const int unsealed = memfd_create("unsealed", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(unsealed, kSegmentAlignment), 0);
  for (const int number : {ends[0], ends[1], device, file, unsealed}) {
    EXPECT_FALSE(SharedSegment::Open({name.pid, number, name.key}, 1).ok());
    close(number);
  }
}

// ---- worlds -------------------------------------------------------------------------------------

TEST(SharedMemoryWorld, HasMappingsButNoFilesAndLeavesNothing) {
  for (const bool abort : {false, true}) {
    CompletionQueue queue;
    {
      const World world = MakeSharedMemoryWorld(3);
      EXPECT_EQ(OpenFiles(), 0);
      EXPECT_GT(Mappings(), 0);
      if (abort) world[1]->Abort(Cancelled("enough"));
    }
    EXPECT_EQ(Mappings(), 0);
  }
}

TEST(SharedMemoryWorld, RanksWithoutACommonKeyDoNotShare) {
  const std::string here = SharedMemoryKey();
  for (const auto& keys : {std::vector<std::string>{here, ""}, {"", here}, {here, "another"}}) {
    const World world = MakeGrpcWorld({"127.0.0.1:0", "127.0.0.1:0"}, {}, keys);
    EXPECT_EQ(Mappings(), 0);
    CompletionQueue queue;
    const std::vector<std::byte> sent = PatternBytes(kMiB, 3);
    std::vector<std::byte> received(sent.size());
    world[0]->Send(1, Label(1), sent, {&queue, 0});
    world[1]->Receive(0, Label(1), received, {&queue, 1});
    for (const Status& status : Await(&queue, 2)) EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(received, sent);
  }
}

// The receiver has once waited for completions, and no longer does: the bytes arrive all the same.
TEST(SharedMemoryWorld, BytesMoveWhileNoThreadWaitsForThem) {
  const World world = MakeSharedMemoryWorld(2);
  CompletionQueue sending, receiving;
  std::vector<std::byte> one(1);
  world[0]->Send(1, Label(0), one, {&sending, 0});
  world[1]->Receive(0, Label(0), one, {&receiving, 0});
  Await(&receiving, 1);
  Await(&sending, 1);

  const std::vector<std::byte> sent = PatternBytes(32 * kMiB, 5);
  std::vector<std::byte> received(sent.size());
  world[1]->Receive(0, Label(1), received, {&receiving, 0});
  world[0]->Send(1, Label(1), sent, {&sending, 0});
  EXPECT_TRUE(Await(&sending, 1)[0].ok());  // more than fits on the way
  EXPECT_TRUE(Await(&receiving, 1)[0].ok());
  EXPECT_EQ(received, sent);
}

TEST(SharedMemoryWorld, SeveralThreadsMayWaitOnEachRank) {
  constexpr int kThreads = 3, kMessages = 200;
  const World world = MakeSharedMemoryWorld(2);
  OnEveryRank(2 * kThreads, [&](int thread) {
    const int rank = thread / kThreads;
    CompletionQueue queue;
    for (int i = 0; i < kMessages; ++i) {
      const uint64_t number = thread % kThreads * kMessages + i;
      const size_t bytes = i % 20 == 0 ? 3 * kMiB : 1000;
      const std::vector<std::byte> sent = PatternBytes(bytes, number * 2 + rank);
      std::vector<std::byte> received(bytes);
      world[rank]->Send(1 - rank, Label(number), sent, {&queue, 0});
      world[rank]->Receive(1 - rank, Label(number), received, {&queue, 1});
      for (const Status& status : Await(&queue, 2)) ASSERT_TRUE(status.ok()) << status.ToString();
      ASSERT_EQ(received, PatternBytes(bytes, number * 2 + 1 - rank));
    }
  });
}

// ---- other processes: tests/dist/transport/transport_rank_main.cc -------------------------------

// Rank 0, and a rank 1 that sends as fast as it can.
struct Pair {
  explicit Pair(const std::string& memory)
      : listener(std::move(*ListenGrpc("127.0.0.1:0", {}))),
        remote({std::string(RT_BINARY_DIR) + "/tests/dist_transport_rank_main", listener->address(),
                memory, "sends"}),
        address(remote.ReadLine().value()) {
    const std::vector<std::string> addresses{listener->address(), address};
    transport = std::move(
        *ConnectRouted(listener.get(), {.rank = 0,
                                        .addresses = addresses,
                                        .memory_keys = {SharedMemoryKey(), SharedMemoryKey()}}));
    RT_CHECK(remote.ReadLine() == "connected", "the other rank is connected");
  }

  // The next `n` messages; false once one has failed.
  bool Receive(size_t n) {
    std::vector<std::vector<std::byte>> received(n, std::vector<std::byte>(kMiB));
    for (size_t i = 0; i < n; ++i) {
      transport->Receive(1, {.tag = {.collective = next + i}}, received[i], {&queue, i});
    }
    if (in_between) in_between();
    bool all = true;
    const std::vector<Status> statuses = Await(&queue, n);
    for (size_t i = 0; i < n; ++i, ++next) {
      if (statuses[i].ok()) {
        EXPECT_EQ(received[i], std::vector<std::byte>(kMiB, static_cast<std::byte>(next)));
      } else {
        EXPECT_EQ(statuses[i].code(), StatusCode::kUnavailable);
        EXPECT_THAT(statuses[i].message(), HasSubstr("lost rank 1 (" + address + ")"));
        all = false;
      }
    }
    return all;
  }

  std::unique_ptr<TransportListener> listener;
  ChildProcess remote;
  std::string address;
  std::unique_ptr<Transport> transport;
  CompletionQueue queue;
  uint64_t next = 0;
  std::function<void()> in_between;
};

// At any instant, mostly with a message half in the ring.
TEST(SharedMemoryProcesses, AKilledRankIsNamedAndReceivedMessagesAreWhole) {
  for (int round = 0; round < 5; ++round) {
    {
      Pair pair("shared");
      ASSERT_TRUE(pair.Receive(3 + round));
      pair.in_between = [&] { pair.remote.Signal(SIGKILL); };
      EXPECT_FALSE(pair.Receive(1000));
    }
    EXPECT_EQ(Mappings(), 0);
  }
}

TEST(SharedMemoryProcesses, AStoppedRankContinuesWhereItWas) {
  Pair pair("shared");
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(pair.Receive(2 + round));
    pair.remote.Signal(SIGSTOP);
    pair.in_between = [&] { pair.remote.Signal(SIGCONT); };
    ASSERT_TRUE(pair.Receive(10));
    pair.in_between = nullptr;
  }
}

TEST(SharedMemoryProcesses, ARankThatMayNotShareUsesTheSocket) {
  for (const char* memory : {"cannot_make", "cannot_map"}) {
    Pair pair(memory);
    EXPECT_TRUE(pair.Receive(20)) << memory;
  }
}

}  // namespace
}  // namespace ringtail
