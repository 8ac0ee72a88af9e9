// All wait for all, whatever number of tickets a round has: two workers, tickets of 4 rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dist/parameter_server/presets.h"
#include "tests/dist/parameter_server/wire/served_weights.h"

namespace ringtail {
namespace {

using testing::Each;

constexpr int kWorkers = 2;

// What WorkerRound does, without threads: a story that is always the same.
class Story {
 public:
  Story(int64_t rows, int64_t first_round)
      : served_(PublishedRule(AsynchronousConfig::SYNCHRONOUS), 2, rows) {
    service()->Open(first_round);
    for (int worker = 0; worker < kWorkers; ++worker) service()->Join(worker, 4);
    for (int worker = 0; worker < kWorkers; ++worker) {
      Ask(worker);
      Send(worker, {.kind = MessageKind::kPull});
    }
  }

  // Until no one can do anything. `bad`: the first row of a ticket whose gradient is not finite,
  // `times` times.
  void Play(int64_t bad = -1, int times = 0) {
    for (bool moved = true; moved;) {
      moved = false;
      for (int worker = 0; worker < kWorkers; ++worker) {
        const Player& player = players_[worker];
        if (player.tickets.empty() || !player.version) continue;
        Push(worker, player.tickets.front().first != bad || times-- <= 0);
        moved = true;
      }
    }
  }
  void NextRound(int64_t end) {
    const std::vector<int64_t> pushes = service()->Pushes(kWorkers);
    auto counts = std::make_shared<AlignedBuffer>(pushes.size() * sizeof(int64_t));
    std::memcpy(counts->data(), pushes.data(), counts->size_bytes());
    Send(0, {.kind = MessageKind::kSnapshot, .bytes = counts->size_bytes()}, counts);
    Deliver(service()->Open(end));
    Ask(0);
  }
  int64_t used() const { return served_.desk().tickets().UsedUpTo(); }
  int64_t version() const { return served_.version(); }
  const std::vector<int64_t>& staleness() const { return staleness_; }  // of pushes that were taken
  ShardService* service() { return served_.service(); }

 private:
  struct Player {
    std::deque<Ticket> tickets;
    std::optional<int64_t> version;  // of weights that it has pulled
    int64_t pushes = 0;
  };
  void Ask(int worker) {  // two ahead
    for (int i = 0; i < 2; ++i) Send(worker, {.kind = MessageKind::kAsk});
  }
  void Push(int worker, bool finite) {
    Player& player = players_[worker];
    const Ticket ticket = player.tickets.front();
    player.tickets.pop_front();
    Send(worker, {.kind = MessageKind::kAsk});
    ServerMessage push{.kind = MessageKind::kPush,
                       .finite = finite,
                       .clock = player.pushes++,
                       .version = *std::exchange(player.version, std::nullopt),
                       .first = ticket.first,
                       .rows = static_cast<int32_t>(ticket.rows)};
    if (ticket.rows == 0) {
      Send(worker, push);
    } else {
      push.statistics = true;
      push.bytes = 2 * sizeof(float);
      Send(worker, push, BufferOf({4, 4}), BufferOf({0}));
    }
    if (!finite) {
      push = {
          .kind = MessageKind::kReturn, .finite = false, .first = push.first, .rows = push.rows};
      Send(worker, push);
    }
    Send(worker, {.kind = MessageKind::kPull});
  }
  void Send(int worker, const ServerMessage& message, SharedBuffer bytes = nullptr,
            SharedBuffer statistics = nullptr) {
    const Status fits = service()->Check(worker, message);
    ASSERT_TRUE(fits.ok()) << fits.message();
    Deliver(service()->Handle({.worker = worker,
                               .message = message,
                               .gradient = std::move(bytes),
                               .statistics = std::move(statistics)}));
  }
  void Deliver(const std::vector<ServerReply>& replies) {
    for (const ServerReply& reply : replies) {
      const ServerMessage& message = reply.message;
      Player& player = players_[reply.worker];
      if (message.kind == MessageKind::kTicket) {
        player.tickets.push_back({message.first, message.rows});
      }
      if (message.kind == MessageKind::kWeights) player.version = message.version;
      if (message.kind == MessageKind::kJudged && message.applied) {
        staleness_.push_back(message.clock);
      }
    }
  }

  ServedWeights served_;
  std::array<Player, kWorkers> players_;
  std::vector<int64_t> staleness_;
};

// As after the death of a third worker: a step has 12 rows, which are three tickets.
TEST(SynchronousRoundsTest, AnOddNumberOfTicketsInEachRoundEnds) {
  Story story(36, 12);
  for (const int64_t end : {12, 24, 36}) {
    story.Play();
    EXPECT_EQ(story.used(), end);
    EXPECT_EQ(story.version(), end / 6) << "an update of 8 images, and one of 4";
    if (end < 36) story.NextRound(end + 12);
  }
  EXPECT_THAT(story.staleness(), Each(0));
}

TEST(SynchronousRoundsTest, ATicketThatIsNotFiniteHoldsUpNoOne) {
  Story story(16, 16);
  story.Play(/*bad=*/0, /*times=*/5);
  EXPECT_EQ(story.used(), 16);
  EXPECT_THAT(story.staleness(), Each(0));
}

TEST(SynchronousRoundsTest, OnlyWhoHasATicketOfNoRowsPassesAndOnlyWhereAllWait) {
  Story story(16, 16);
  const ServerMessage pass{.kind = MessageKind::kPush, .clock = 0};
  EXPECT_FALSE(story.service()->Check(0, pass).ok()) << "it has a ticket of 4 rows";
  ServedWeights other(PublishedRule(AsynchronousConfig::ASYNCHRONOUS), 2, 16, /*first=*/false);
  other.service()->Join(0, 4);
  EXPECT_FALSE(other.service()->Check(0, pass).ok());
}

}  // namespace
}  // namespace ringtail
