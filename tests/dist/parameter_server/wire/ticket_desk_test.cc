#include "dist/parameter_server/wire/ticket_desk.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/random.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kA = 0, kB = 1, kC = 2;

// "0: 8..15", "0: passes", "0: over 0", "1: end 15"
std::vector<std::string> Answers(TicketDesk* desk) {
  std::vector<std::string> texts;
  for (const TicketDesk::Answer& answer : desk->TakeAnswers()) {
    std::string text = fmt::format("{} {}", answer.closed ? "end" : "over", answer.signal);
    if (answer.ticket) {
      text = fmt::format("{}..{}", answer.ticket->first, answer.ticket->end() - 1);
      if (answer.ticket->rows == 0) text = "passes";
    }
    texts.push_back(fmt::format("{}: {}", answer.worker, text));
  }
  return texts;
}

TEST(TicketDeskTest, AsDrawn) {
  TicketDesk desk(Tickets(100, 200), /*in_turn=*/false);
  desk.Join(kA, 8);
  desk.Join(kB, 8);
  desk.Join(9, 0);
  desk.Open(16);
  desk.Ask(9, 0, 0);  // computes nothing
  desk.Ask(kA, 0, 0);
  desk.Ask(kB, 0, 0);
  EXPECT_THAT(Answers(&desk), ElementsAre("0: 0..7", "1: 8..15"));
  desk.Ask(kA, 1, 0);
  EXPECT_TRUE(desk.Use(kA, {0, 8}));
  EXPECT_THAT(Answers(&desk), IsEmpty()) << "some rows may come back";
  EXPECT_TRUE(desk.Use(kB, {8, 8}));
  EXPECT_THAT(Answers(&desk), ElementsAre("0: over 0"));
  desk.Ask(kB, 1, 0);
  EXPECT_THAT(Answers(&desk), IsEmpty()) << "waits for the next round";
  desk.Open(32);
  EXPECT_THAT(Answers(&desk), ElementsAre("1: 16..23"));
  desk.Ask(kB, 2, 0);
  desk.Close();
  EXPECT_THAT(Answers(&desk), ElementsAre("9: end 0", "1: end 0"));
  desk.Ask(kA, 2, 0);
  EXPECT_THAT(Answers(&desk), ElementsAre("0: end 0"));
}

TEST(TicketDeskTest, InTurnTheLowestWorkerFirst) {
  TicketDesk desk(Tickets(100, 200), /*in_turn=*/true);
  desk.Join(9, 0);  // computes nothing, and is not waited for
  for (const int worker : {kA, kB, kC}) desk.Join(worker, worker + 1);
  desk.Open(12);
  desk.Ask(kC, 0, 0);
  desk.Ask(kA, 0, 0);
  desk.Ask(kA, 1, 0);
  EXPECT_THAT(Answers(&desk), IsEmpty());
  desk.Ask(kB, 0, 0);
  EXPECT_THAT(Answers(&desk), ElementsAre("0: 0..0", "1: 1..2", "2: 3..5"));
  desk.Ask(kC, 1, 0);
  EXPECT_THAT(Answers(&desk), IsEmpty());
  desk.Remove(kB);  // 1..2 are back, and no one waits for it
  EXPECT_THAT(Answers(&desk), ElementsAre("0: 1..1", "2: 2..2"));
}

// Who waits for all waits for none that has nothing to push.
TEST(TicketDeskTest, InTurnThereIsATicketOfNoRowsForThoseWhoAreLeftWithoutImages) {
  TicketDesk desk(Tickets(100, 200), /*in_turn=*/true);
  for (const int worker : {kA, kB}) desk.Join(worker, 4);
  desk.Open(12);
  for (const int worker : {kA, kB}) {
    desk.Ask(worker, 0, 0);
    desk.Ask(worker, 1, 0);
  }
  EXPECT_THAT(Answers(&desk), ElementsAre("0: 0..3", "1: 4..7", "0: 8..11", "1: passes"));
  EXPECT_FALSE(desk.Passes(kA));
  EXPECT_TRUE(desk.Passes(kB));
  desk.Ask(kA, 2, 0);
  desk.Ask(kB, 2, 0);
  for (const Ticket& ticket : {Ticket{0, 4}, Ticket{8, 4}}) EXPECT_TRUE(desk.Use(kA, ticket));
  EXPECT_TRUE(desk.Use(kB, {4, 4}));
  EXPECT_THAT(Answers(&desk), IsEmpty()) << "what B says about the last turn is under way";
  desk.Pass(kB);
  EXPECT_THAT(Answers(&desk), ElementsAre("0: over 0"));
  desk.Open(16);
  desk.Ask(kA, 3, 0);
  EXPECT_THAT(Answers(&desk), ElementsAre("0: 12..15", "1: passes"));
  desk.Remove(kB);
  EXPECT_TRUE(desk.Use(kA, {12, 4}));
  desk.Ask(kA, 4, 0);
  EXPECT_THAT(Answers(&desk), ElementsAre("0: over 0")) << "no one waits for what it would say";
}

// While the keeper saves what the round has become.
TEST(TicketDeskTest, ASignalBetweenTwoRoundsEndsTheSecond) {
  TicketDesk desk(Tickets(100, 200), /*in_turn=*/false);
  desk.Join(kA, 8);
  desk.Join(9, 0);
  desk.Open(8);
  desk.Ask(kA, 0, 0);
  EXPECT_THAT(Answers(&desk), ElementsAre("0: 0..7"));
  desk.Ask(kA, 1, 0);
  EXPECT_TRUE(desk.Use(kA, {0, 8}));
  EXPECT_THAT(Answers(&desk), ElementsAre("0: over 0"));
  desk.Ask(9, 0, 15);
  EXPECT_THAT(Answers(&desk), IsEmpty());
  desk.Open(16);
  desk.Ask(kA, 2, 0);
  EXPECT_THAT(Answers(&desk), ElementsAre("0: over 15"));
  desk.Open(24);  // of a run that continues all the same
  desk.Ask(kA, 3, 0);
  EXPECT_THAT(Answers(&desk), ElementsAre("0: 8..15"));
}

TEST(TicketDeskTest, WhoMustStopEndsTheRound) {
  TicketDesk desk(Tickets(100, 200), /*in_turn=*/false);
  desk.Join(kA, 8);
  desk.Join(kB, 8);
  desk.Open(100);
  desk.Ask(kA, 0, 0);
  desk.Ask(kB, 0, 0);
  EXPECT_THAT(Answers(&desk), ElementsAre("0: 0..7", "1: 8..15"));
  desk.Ask(kA, 1, 15);
  desk.Ask(kB, 1, 2);
  EXPECT_TRUE(desk.Use(kA, {0, 8}));
  EXPECT_THAT(Answers(&desk), IsEmpty()) << "a ticket is under way";
  EXPECT_TRUE(desk.GiveBack(kB, {8, 8}));
  const auto over = desk.TakeAnswers();
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over[0].signal, 15);
  EXPECT_EQ(over[0].stopped_by, kA);
  EXPECT_THAT(desk.tickets().Unused(), ElementsAre(Ticket{8, 8}));
  desk.Open(100);
  EXPECT_THAT(Answers(&desk), ElementsAre("1: 8..15"));
}

TEST(TicketDeskTest, TicketsOfOthersCannotBeUsed) {
  TicketDesk desk(Tickets(100, 200), /*in_turn=*/false);
  desk.Join(kA, 8);
  desk.Join(kB, 8);
  desk.Open(100);
  desk.Ask(kA, 0, 0);
  EXPECT_THAT(Answers(&desk), ElementsAre("0: 0..7"));
  EXPECT_FALSE(desk.Use(kB, {0, 8}));
  EXPECT_FALSE(desk.GiveBack(kA, {0, 7}));
  EXPECT_TRUE(desk.Holds(kA, {0, 8}));
}

// Workers push, are refused and die at any moment: every row of a round is used once, and then the
// keeper hears of it, in whatever order they ask.
TEST(TicketDeskTest, RandomStoriesEndWithEveryRowUsedOnce) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Rng random{RngKey(seed)};
    TicketDesk desk(Tickets(40, 80), /*in_turn=*/seed % 2 == 0);
    std::set<int> workers = {0, 1, 2, 3};
    for (const int worker : workers) desk.Join(worker, 1 + static_cast<int64_t>(random.Below(9)));
    std::vector<int> used(80);
    std::map<int, std::deque<Ticket>> held;
    std::map<int, int> asked;
    for (const int64_t end : {40, 80}) {
      desk.Open(end);
      bool over = false;
      for (int events = 0; !over; ++events) {
        ASSERT_LT(events, 10'000) << "seed " << seed;
        const auto chosen =
            std::next(workers.begin(), static_cast<int64_t>(random.Below(workers.size())));
        const int worker = *chosen;
        const uint64_t event = random.Below(100);
        if (event == 0 && worker != 0) {
          workers.erase(chosen);
          desk.Remove(worker);
          held.erase(worker);
          asked.erase(worker);
        } else if (!held[worker].empty() && event < 60) {
          const Ticket ticket = held[worker].front();
          held[worker].pop_front();
          if (ticket.rows == 0) {
            ASSERT_TRUE(desk.Passes(worker));
            desk.Pass(worker);
          }
          const bool refused = random.Below(8) == 0;
          ASSERT_TRUE(ticket.rows == 0 ||
                      (refused ? desk.GiveBack(worker, ticket) : desk.Use(worker, ticket)));
          for (int64_t row = ticket.first; !refused && row < ticket.end(); ++row) ++used[row];
        } else if (asked[worker] + std::ssize(held[worker]) < 2) {
          desk.Ask(worker, 0, 0);
          ++asked[worker];
        }
        for (const TicketDesk::Answer& answer : desk.TakeAnswers()) {
          --asked[answer.worker];
          if (answer.ticket) held[answer.worker].push_back(*answer.ticket);
          if (answer.ticket) continue;
          EXPECT_EQ(answer.worker, 0);
          over = true;
        }
      }
    }
    EXPECT_THAT(used, testing::Each(1)) << "seed " << seed;
    EXPECT_TRUE(desk.tickets().finished());
  }
}

}  // namespace
}  // namespace ringtail
