#include "dist/parameter_server/tickets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/random.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

constexpr int kA = 0, kB = 1;

TEST(TicketsTest, AsDrawn) {
  Tickets tickets(100, 200);
  EXPECT_THAT(tickets.Take(kA, 8), Optional(Ticket{0, 8}));
  EXPECT_THAT(tickets.Take(kB, 8), Optional(Ticket{8, 8}));
  tickets.Remove(kA);
  EXPECT_FALSE(tickets.Holds(kA, {0, 8}));
  EXPECT_THAT(tickets.Take(kB, 8), Optional(Ticket{0, 8}));
  tickets.GiveBack(kB, {8, 8});
  tickets.Use(kB, {0, 8});
  EXPECT_EQ(tickets.UsedUpTo(), 8);
  EXPECT_THAT(tickets.Take(kA, 100), Optional(Ticket{8, 8}));
}

TEST(TicketsTest, NoneReachesAcrossTheEndOfAnEpochOrOfTheRun) {
  Tickets tickets(10, 25);
  EXPECT_THAT(tickets.Take(kA, 8), Optional(Ticket{0, 8}));
  EXPECT_THAT(tickets.Take(kA, 8), Optional(Ticket{8, 2}));
  EXPECT_THAT(tickets.Take(kB, 8), Optional(Ticket{10, 8}));
  tickets.GiveBack(kA, {8, 2});
  tickets.GiveBack(kB, {10, 8});
  EXPECT_THAT(tickets.Take(kA, 8), Optional(Ticket{8, 2}));
  EXPECT_THAT(tickets.Take(kA, 100), Optional(Ticket{10, 8}));
  EXPECT_THAT(tickets.Take(kA, 100), Optional(Ticket{18, 2}));
  EXPECT_THAT(tickets.Take(kA, 100), Optional(Ticket{20, 5}));
  EXPECT_EQ(tickets.Take(kA, 1), std::nullopt);
  EXPECT_FALSE(tickets.finished());
}

TEST(TicketsTest, WhatIsBackIsJoined) {
  Tickets tickets(100, 100);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(tickets.Take(kA, 10));
  tickets.GiveBack(kA, {10, 10});
  tickets.GiveBack(kA, {30, 10});
  EXPECT_THAT(tickets.Unused(), ElementsAre(Ticket{0, 10}, Ticket{10, 10}, Ticket{20, 10},
                                            Ticket{30, 10}, Ticket{40, 10}));
  tickets.GiveBack(kA, {20, 10});
  EXPECT_THAT(tickets.Take(kB, 100), Optional(Ticket{10, 30}));
}

TEST(TicketsTest, IsRestoredWithWhatWasNotUsed) {
  Tickets tickets(10, 40);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(tickets.Take(kA, 5));
  tickets.Use(kA, {0, 5});
  tickets.Use(kA, {15, 5});
  auto restored = Tickets::Restore(10, 40, tickets.next(), tickets.Unused());
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_THAT(restored->Unused(), ElementsAre(Ticket{5, 5}, Ticket{10, 5}));
  EXPECT_THAT(restored->Take(kB, 100), Optional(Ticket{5, 5}));
  EXPECT_THAT(restored->Take(kB, 100), Optional(Ticket{10, 5}));
  EXPECT_THAT(restored->Take(kB, 100), Optional(Ticket{20, 10}));
}

TEST(TicketsTest, ADamagedStateIsRefused) {
  const std::vector<std::vector<Ticket>> damaged = {{{-1, 2}},        {{0, 0}},  {{0, 11}},
                                                    {{5, 2}, {6, 1}}, {{10, 1}}, {{0, INT64_MAX}}};
  for (const auto& unused : damaged) {
    const auto restored = Tickets::Restore(10, 40, 10, unused);
    ASSERT_FALSE(restored.ok());
    EXPECT_EQ(restored.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(restored.status().message(), HasSubstr("tickets: "));
  }
  EXPECT_FALSE(Tickets::Restore(10, 40, 41, {}).ok());
  EXPECT_FALSE(Tickets::Restore(10, 40, -1, {}).ok());
}

// Workers take, use and give back tickets, die and join, and the state goes through a checkpoint
// now and then: every row is used once, whatever the order.
void PlayStory(uint64_t number) {
  Rng rng(RngKey(number).With(kTestStream));
  const auto epoch = static_cast<int64_t>(1 + rng.Below(40));
  const auto total = static_cast<int64_t>(1 + rng.Below(120));
  Tickets tickets(epoch, total);
  std::vector<int> used(total);
  std::vector<std::pair<int, Ticket>> under_way;
  int workers = 4, steps = 0;
  while (!tickets.finished()) {
    ASSERT_LT(++steps, 100'000);
    const uint64_t kind = rng.Below(20);
    if (kind < 10) {
      const int worker = workers - 1 - static_cast<int>(rng.Below(4));
      const auto ticket = tickets.Take(worker, static_cast<int64_t>(1 + rng.Below(9)));
      if (!ticket) continue;
      ASSERT_EQ(ticket->first / epoch, (ticket->end() - 1) / epoch);
      ASSERT_LE(ticket->end(), total);
      under_way.emplace_back(worker, *ticket);
    } else if (kind < 18) {
      if (under_way.empty()) continue;
      const auto at = under_way.begin() + static_cast<int64_t>(rng.Below(under_way.size()));
      const auto [worker, ticket] = *at;
      under_way.erase(at);
      if (!tickets.Holds(worker, ticket)) continue;  // it died meanwhile; its push still arrives
      if (kind == 17) {
        tickets.GiveBack(worker, ticket);
        continue;
      }
      tickets.Use(worker, ticket);
      for (int64_t row = ticket.first; row < ticket.end(); ++row) ++used[row];
    } else if (kind == 18) {
      tickets.Remove(workers - 1 - static_cast<int>(rng.Below(4)));
      ++workers;  // a new one takes part
    } else {
      auto restored = Tickets::Restore(epoch, total, tickets.next(), tickets.Unused());
      ASSERT_TRUE(restored.ok()) << restored.status().ToString();
      tickets = *std::move(restored);
    }
    const auto up_to = used.begin() + tickets.UsedUpTo();
    ASSERT_TRUE(std::all_of(used.begin(), up_to, [](int times) { return times == 1; }));
  }
  ASSERT_THAT(used, testing::Each(1));
  ASSERT_THAT(tickets.Unused(), IsEmpty());
}

TEST(TicketsTest, EveryRowIsUsedExactlyOnceInAnyStory) {
  for (uint64_t number = 0; number < 3000; ++number) {
    PlayStory(number);
    ASSERT_FALSE(HasFatalFailure()) << "story " << number;
  }
}

}  // namespace
}  // namespace ringtail
