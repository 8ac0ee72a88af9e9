// Two ranks add up numbers over a wire that damages what passes: a bit is flipped, a piece is lost,
// comes twice, or changes places with the next. Whatever it was, no rank ever has a wrong sum, and
// none waits for ever: either both say what is wrong with which rank, or nothing of theirs was hit
// (HTTP/2's window updates, of which there are far too many, and bits that it does not look at).
//
//   what is hit                            noticed by
//   payload                                its CRC-32C (frame.h)
//   a frame's header                       that header's CRC-32C
//   framing of gRPC or HTTP/2              gRPC; or what it then takes for a frame has a wrong CRC;
//                                            or a frame is missing: the next one's number
//   so that gRPC waits for what never      the peer's heartbeat does not come any more
//     comes, or writes no more
//   anything, under TLS                    the MAC of its record
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "core/random.h"
#include "core/storage/file.h"
#include "dist/communicator.h"
#include "dist/liveness/progress_monitor.h"
#include "tests/dist/membership/certificates.h"
#include "tests/dist/test_world.h"
#include "tests/dist/transport/proxied_world.h"

namespace ringtail {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// What both ranks come to.
struct Outcome {
  std::array<Status, 2> ends;
  int wrong_sums = 0;
};

float Element(int rank, int round, size_t i) {
  const uint64_t mixed = (i + 1) * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(7 * round + rank);
  return static_cast<float>(mixed >> 44);  // two of them have an exact sum
}

// `rounds` sums of `count` numbers, or until the world ends.
Status AddUp(Transport* transport, int rounds, size_t count, std::atomic<int>* wrong) {
  ProgressMonitor monitor(transport, {.limits = {.interval = 100ms, .silence_limit = 3s}});
  monitor.progress().Enter(Phase::kExchange);
  const auto communicator =
      std::move(*Communicator::Create(transport, Topology::Blocks(2, 1), {.algorithm = "ring"}));
  std::vector<float> sum(count);
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < count; ++i) sum[i] = Element(transport->rank(), round, i);
    const Status status = communicator->AllReduce(std::span(sum));
    if (!status.ok()) return monitor.Explain(status);
    for (size_t i = 0; i < count; ++i) {
      *wrong += sum[i] != Element(0, round, i) + Element(1, round, i) ? 1 : 0;
    }
  }
  return monitor.Stop();
}

Outcome AddUpOverDamagedWire(WireProxy::Direction direction, const WireProxy::Damage& damage,
                             int rounds, size_t count, const TransportOptions& options) {
  const ProxiedWorld world(options);
  world.proxy->Begin(direction, damage);
  Outcome outcome;
  std::atomic<int> wrong = 0;
  OnEveryRank(2, [&](int rank) {
    outcome.ends[rank] = AddUp(world.ranks[rank].get(), rounds, count, &wrong);
  });
  outcome.wrong_sums = wrong;
  return outcome;
}

// How many trials ended in which way.
struct Tally {
  std::atomic<int> hit{0};       // something was damaged
  std::atomic<int> checksum{0};  // found by a CRC of ours or by the protocol
  std::atomic<int> broken{0};    // by gRPC, TLS or the kernel: the connection broke
  std::atomic<int> silent{0};    // by heartbeats
  std::atomic<int> harmless{0};  // nothing of ours was hit: all sums are there, and right

  int found() const { return checksum + broken + silent; }
  std::string ToString() const {
    return fmt::format(
        "{} damaged; found: {} by our checksums and protocol, {} as a broken "
        "connection, {} by heartbeats; {} without effect",
        hit.load(), checksum.load(), broken.load(), silent.load(), harmless.load());
  }

  void Count(const Outcome& outcome) {
    EXPECT_EQ(outcome.wrong_sums, 0);
    if (outcome.ends[0].ok() && outcome.ends[1].ok()) {
      ++harmless;
      return;
    }
    // A rank may have finished, with all its sums, before the other finds that something is
    // missing.
    std::string all;
    for (const int rank : {0, 1}) {
      const std::string& message = outcome.ends[rank].message();
      EXPECT_TRUE(message.empty() || message.find(fmt::format("rank {}", 1 - rank)) != message.npos)
          << message;
      all += message;
    }
    const auto says = [&](std::string_view text) { return all.find(text) != all.npos; };
    EXPECT_FALSE(says("no operation ended")) << "not noticed for a minute: " << all;
    if (says("has sent nothing")) {
      ++silent;
    } else if (says("checksum") || says("protocol") || says("frame")) {
      ++checksum;
    } else {
      ++broken;
    }
  }
};

// Flips a random bit of the `bytes` next ones, once; counts it.
WireProxy::Damage FlipOneBit(Rng* random, int64_t bytes, Tally* tally) {
  const auto bit = static_cast<int64_t>(random->Below(8 * bytes));
  return [bit, passed = int64_t{0}, tally](std::vector<std::byte>* piece) mutable {
    const int64_t at = bit / 8 - passed;
    if (at >= 0 && at < static_cast<int64_t>(piece->size())) {
      (*piece)[at] ^= std::byte{1} << (bit % 8);
      ++tally->hit;
    }
    passed += static_cast<int64_t>(piece->size());
    return true;
  };
}

// Several at a time: much of a trial is waiting.
void RunTrials(int trials, const std::function<void(int trial)>& run) {
  constexpr int kLanes = 8;
  std::atomic<int> next = 0;
  OnEveryRank(kLanes, [&](int) {
    for (int trial = next++; trial < trials; trial = next++) run(trial);
  });
}

// A bit in about a megabyte of large messages, in half of the trials; in the others one in some
// thousand bytes of small messages, where every sixth byte is a header.
void FlipBits(int trials, const TransportOptions& options, Tally* tally) {
  RunTrials(trials, [&](int trial) {
    Rng random(RngKey(11).With(static_cast<uint64_t>(trial)));
    const bool large = trial % 2 == 0;
    const size_t count = large ? 64 << 10 : 100;
    const int rounds = large ? 8 : 80;  // twice as many bytes as may be hit
    const int64_t bytes = large ? 1 << 20 : 20'000;
    const auto direction = trial / 2 % 2 == 0 ? WireProxy::kToListener : WireProxy::kToDialler;
    tally->Count(
        AddUpOverDamagedWire(direction, FlipOneBit(&random, bytes, tally), rounds, count, options));
  });
}

TEST(DamagedWire, AThousandFlippedBitsMakeNoWrongSum) {
  constexpr int kFlips = 1'000;
  Tally tally;
  FlipBits(kFlips, {}, &tally);
  fmt::print("flipped bits: {}\n", tally.ToString());
  EXPECT_EQ(tally.hit, kFlips);
  EXPECT_EQ(tally.found() + tally.harmless, kFlips);
  EXPECT_GE(tally.found(), kFlips * 9 / 10);  // the others hit what HTTP/2 does not look at
}

TEST(DamagedWire, UnderTlsEveryFlippedBitBreaksTheConnection) {
  constexpr int kFlips = 20;
  const TestAuthority authority("the job's authority");
  const SecurityOptions files = authority.Issue("rank");
  const auto text = [](const std::string& path) { return *ReadFileText(path, 1 << 16); };
  const TransportOptions options{.tls = {.certificate = text(files.tls_cert),
                                         .key = text(files.tls_key),
                                         .authority = text(files.tls_ca)}};
  Tally tally;
  FlipBits(kFlips, options, &tally);
  fmt::print("flipped bits under TLS: {}\n", tally.ToString());
  EXPECT_EQ(tally.hit, kFlips);
  EXPECT_EQ(tally.found(), kFlips);
}

// ---- pieces that are lost, doubled, in another order --------------------------------------------

struct PieceDamage {
  std::string name;
  WireProxy::Damage damage;
};
void PrintTo(const PieceDamage& damage, std::ostream* out) { *out << damage.name; }

// Not at the end of anything: HTTP/2's window updates come in pairs of equal length.
size_t CutAt(size_t size) { return size * 2 / 5; }

bool LoseEnd(std::vector<std::byte>* piece) {
  piece->resize(CutAt(piece->size()));
  return true;
}

bool LoseEndAndConnection(std::vector<std::byte>* piece) {
  LoseEnd(piece);
  return false;
}

bool Double(std::vector<std::byte>* piece) {
  const std::vector<std::byte> copy = *piece;
  piece->insert(piece->end(), copy.begin(), copy.end());
  return true;
}

bool SwapParts(std::vector<std::byte>* piece) {
  std::rotate(piece->begin(), piece->begin() + CutAt(piece->size()), piece->end());
  return true;
}

class DamagedPieceTest : public ::testing::TestWithParam<PieceDamage> {};

INSTANTIATE_TEST_SUITE_P(
    All, DamagedPieceTest,
    ::testing::Values(PieceDamage{"truncated", LoseEnd},
                      PieceDamage{"truncated_and_closed", LoseEndAndConnection},
                      PieceDamage{"duplicated", Double}, PieceDamage{"reordered", SwapParts}),
    [](const auto& info) { return info.param.name; });

TEST_P(DamagedPieceTest, EndsCleanlyAndMakesNoWrongSum) {
  constexpr int kTrials = 24;
  Tally tally;
  RunTrials(kTrials, [&](int trial) {
    const bool large = trial % 2 == 0;
    int pieces_before = trial / 2;
    const WireProxy::Damage once = [&, pieces_before](std::vector<std::byte>* piece) mutable {
      if (pieces_before-- != 0) return true;
      ++tally.hit;
      return GetParam().damage(piece);
    };
    const auto direction = trial / 2 % 2 == 0 ? WireProxy::kToListener : WireProxy::kToDialler;
    tally.Count(
        AddUpOverDamagedWire(direction, once, large ? 20 : 200, large ? 64 << 10 : 100, {}));
  });
  fmt::print("{}: {}\n", GetParam().name, tally.ToString());
  EXPECT_EQ(tally.hit, kTrials);
  EXPECT_EQ(tally.found() + tally.harmless, kTrials);
}

// ---- one direction stands still -----------------------------------------------------------------

// Both directions are full in a collective, and the frame that grants more waits behind the data
// that goes the same way. So megabytes have to get through without it.
TEST(HeldWire, OverANetworkMegabytesNeedNoAnswer) {
  constexpr size_t kMessages = 3;
  std::vector<std::byte> held;
  ProxiedWorld world({.over_network = true});
  world.proxy->Begin(WireProxy::kToDialler, [&](std::vector<std::byte>* bytes) {
    held.insert(held.end(), bytes->begin(), bytes->end());
    bytes->clear();
    return true;
  });
  CompletionQueue sent, received;
  std::vector<std::vector<std::byte>> messages, memories(kMessages);
  for (size_t i = 0; i < kMessages; ++i) {
    messages.push_back(PatternBytes(1 << 20, i));
    memories[i].resize(messages[i].size());
    const MessageLabel label{.tag = {.collective = i}};
    world.ranks[0]->Receive(1, label, memories[i], {.queue = &received, .id = i});
    world.ranks[1]->Send(0, label, messages[i], {.queue = &sent, .id = i});
  }
  for (const Status& status : Await(&received, kMessages)) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  EXPECT_EQ(memories, messages);
  // The held bytes are followed by the next piece: rank 0's goodbye.
  world.proxy->Begin(WireProxy::kToDialler, [&](std::vector<std::byte>* bytes) {
    held.insert(held.end(), bytes->begin(), bytes->end());
    *bytes = std::exchange(held, {});
    return true;
  });
  OnEveryRank(2, [&](int rank) { world.ranks[rank].reset(); });
  for (const Status& status : Await(&sent, kMessages)) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

}  // namespace
}  // namespace ringtail
