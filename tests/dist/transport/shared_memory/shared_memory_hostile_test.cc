// Shared memory with a peer that offers, and writes there, whatever it likes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "core/check.h"
#include "core/random.h"
#include "dist/transport/shared_memory/shared_memory.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kPeerRing = 1 << 17;

MessageLabel Label(uint64_t collective) { return {.tag = {.collective = collective}, .check = 7}; }

TEST(PeerMemory, OffersThatCannotBeAreErrors) {
  const auto made = SharedSegment::Create(2 * kSegmentAlignment + kPeerRing);
  ASSERT_TRUE(made.ok());
  const auto map = [&](uint64_t offset, uint64_t bytes) {
    return PeerMemory::Map({.segment = made->name(), .offset = offset, .ring_bytes = bytes});
  };
  EXPECT_TRUE(map(kSegmentAlignment, kPeerRing).ok());
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, kPeerRing - 1, kPeerRing / 2,
                               2 * kPeerRing, uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_EQ(map(kSegmentAlignment, bytes).status().code(), StatusCode::kDataLoss) << bytes;
  }
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, kSegmentAlignment + 64,
                                2 * kSegmentAlignment, UINT64_MAX, UINT64_MAX << 16}) {
    EXPECT_EQ(map(offset, kPeerRing).status().code(), StatusCode::kDataLoss) << offset;
  }
}

// Rank 0's end, and as rank 1 this test with its hands in the memory.
class HostilePeerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    shared_ = *SharedMemory::Create({{1, &messages_}}, [this](int peer, const Status& status) {
      EXPECT_EQ(peer, 1);
      MutexLock lock(&mutex_);
      if (error_.ok()) error_ = status;
      changed_.NotifyAll();
    });
    memory_.emplace(*PeerMemory::Map(shared_->OfferTo(1)));
    segment_.emplace(*SharedSegment::Create(2 * kSegmentAlignment + kPeerRing));
    const SharedMemoryOffer offer{
        .segment = segment_->name(), .offset = kSegmentAlignment, .ring_bytes = kPeerRing};
    to_us_.emplace(*PeerMemory::Map(offer));
    shared_->Start(1, *PeerMemory::Map(offer));
  }
  void TearDown() override {
    shared_->StopFrames();
    shared_->Stop();
    ending_->Set(Cancelled("the test is over"));
    messages_.End({});
  }

  RingHeader* Header() { return reinterpret_cast<RingHeader*>(memory_->slot.bytes().data()); }
  std::span<std::byte> Data() { return memory_->slot.bytes().subspan(kSegmentAlignment); }
  // Of the ring from rank 0.
  RingHeader* TheirHeader() { return reinterpret_cast<RingHeader*>(to_us_->slot.bytes().data()); }
  void Ring() { RingBell(reinterpret_cast<Doorbell*>(memory_->first_page.bytes().data() + 64)); }
  void Publish(std::span<const std::byte> bytes) {
    std::memcpy(Data().data(), bytes.data(), bytes.size());
    Header()->head.store(bytes.size());
    Ring();
  }
  Status Error() {
    MutexLock lock(&mutex_);
    while (error_.ok()) RT_CHECK(changed_.WaitUntil(&mutex_, TestDeadline()), "it is an error");
    return error_;
  }

  CompletionQueue queue_;
  const std::shared_ptr<Ending> ending_ = std::make_shared<Ending>();
  PeerMessages messages_{1, 0, ending_};
  std::shared_ptr<SharedMemory> shared_;
  std::optional<SharedSegment> segment_;      // rank 1's
  std::optional<PeerMemory> memory_, to_us_;  // rank 0's as rank 1 has it, and its own
  Mutex mutex_;
  ConditionVariable changed_;
  Status error_ RT_GUARDED_BY(mutex_);
};

TEST_F(HostilePeerTest, AHeadThatCannotBe) {
  Header()->head.store(Data().size() + 1);
  Ring();
  EXPECT_EQ(Error().code(), StatusCode::kDataLoss);
  EXPECT_THAT(Error().message(), HasSubstr("shared memory with rank 1: 1048577 bytes written"));
}

TEST_F(HostilePeerTest, ATailThatCannotBe) {
  TheirHeader()->tail.store(12345);
  const std::vector<std::byte> bytes(100);
  ASSERT_TRUE(messages_
                  .Send(std::make_shared<SendOperation>(
                      1, Label(1), bytes, CompletionTarget{.queue = &queue_}, ending_))
                  .ok());
  shared_->Pump(1);
  EXPECT_THAT(Error().message(), AllOf(HasSubstr("shared memory with rank 1"),
                                       HasSubstr("to be read in a ring of 131072")));
}

TEST_F(HostilePeerTest, HalfAFrame) {
  Publish(PatternBytes(10, 1));
  EXPECT_THAT(Error().message(), HasSubstr("half a frame"));
}

TEST_F(HostilePeerTest, NoFrame) {
  std::vector<std::byte> bytes = PatternBytes(64, 1);
  std::fill_n(bytes.begin() + 12, 4, std::byte{0});
  Publish(bytes);
  EXPECT_THAT(Error().message(), HasSubstr("not a frame"));
}

TEST_F(HostilePeerTest, AFrameThatEndsBehindWhatIsThere) {
  const auto header =
      EncodeHeader({.payload_bytes = 1000, .label = Label(1), .message_bytes = 1000});
  Publish(header);
  EXPECT_THAT(Error().message(), HasSubstr("half a frame"));
}

TEST_F(HostilePeerTest, AFrameWithALengthThatOverflows) {
  const auto header =
      EncodeHeader({.payload_bytes = UINT32_MAX, .label = Label(1), .message_bytes = UINT64_MAX});
  Publish(header);
  EXPECT_THAT(Error().message(), HasSubstr("half a frame"));
}

TEST_F(HostilePeerTest, AMessageWithoutCredit) {
  const auto header =
      EncodeHeader({.payload_bytes = 0, .label = Label(1), .message_bytes = 1 << 30});
  Publish(header);
  EXPECT_THAT(Error().message(), HasSubstr("more than it has credit for"));
}

// A header that changes while it is being read, and payload that does: what counts is the copy.
// Nothing but an error, or nothing at all, may come of it; sanitizers watch.
TEST_F(HostilePeerTest, BytesThatChangeAllTheTime) {
  auto valid = EncodeHeader({.payload_bytes = 64, .label = Label(1), .message_bytes = 64});
  Rng random(RngKey(4));
  for (int i = 0; i < 20000; ++i) {
    std::memcpy(Data().data() + random.Below(16) * 64, valid.data(), valid.size());
    Data()[random.Below(2048)] = static_cast<std::byte>(random.Below(256));
    Header()->head.store(random.Below(4096));
    Header()->tail.store(random.Below(UINT64_MAX));
    Header()->writer_waits.store(1);
    TheirHeader()->head.store(random.Below(UINT64_MAX));
    Ring();
  }
  Header()->head.store(UINT64_MAX);
  Ring();
  EXPECT_FALSE(Error().ok());
}

}  // namespace
}  // namespace ringtail
