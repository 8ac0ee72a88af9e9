// Servers and workers over every kind of transport.
#include "dist/parameter_server/wire/server_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "dist/parameter_server/presets.h"
#include "dist/parameter_server/wire/worker_link.h"
#include "tests/dist/parameter_server/wire/served_weights.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 3;
constexpr size_t kWeights = 300'000;  // more than one piece, and than shared memory's ring
constexpr int64_t kRows = 4;          // of a ticket

bool AllAre(std::span<const float> values, int64_t expected) {
  const auto value = static_cast<float>(expected);
  return std::ranges::all_of(values, [value](float v) { return v == value; });
}

// A rank that serves a shard and works for all.
class Rank {
 public:
  Rank(Transport* transport, const AsynchronousRule& rule, int64_t rows)
      : transport_(transport),
        served_(rule, kWeights, rows, transport->rank() == 0),
        link_(transport, Servers(transport->world_size(), rule.synchronous())) {
    ServerThread::Options options{.requests = Channel(100 + 2 * transport->rank()),
                                  .replies = Channel(101 + 2 * transport->rank()),
                                  .own = link_.own_replies(transport->rank())};
    for (int worker = 0; worker < transport->world_size(); ++worker) {
      served_.service()->Join(worker, kRows);
      options.workers.push_back(worker);
    }
    thread_ = std::make_unique<ServerThread>(transport, served_.service(), options);
    link_.SetOwn(transport->rank(), thread_.get());
  }

  // Until there are no tickets: a gradient is as many ones as the ticket has images.
  void Work() {
    while (true) {
      link_.Send(0, {.kind = MessageKind::kAsk});
      const ServerMessage ticket = Await(1)[0].message;
      if (ticket.kind == MessageKind::kRoundOver) {
        thread_->Run(
            [](ShardService* service) { return service->Close({.kind = MessageKind::kEnd}); });
      }
      if (ticket.kind != MessageKind::kTicket) break;
      for (int server = 0; server < transport_->world_size(); ++server) {
        link_.Send(server, {.kind = MessageKind::kPull});
      }
      std::vector<int64_t> versions(transport_->world_size());
      for (const WorkerLink::Reply& reply : Await(transport_->world_size())) {
        versions[reply.server] = reply.message.version;
        EXPECT_TRUE(AllAre(reply.weights->floats(), 1 - reply.message.version));
      }
      Push(ticket, versions);
    }
  }
  void Leave() {
    link_.Leave();
    link_.Finish();
    thread_.reset();
  }
  // Weights that it will not look at.
  void PullAhead() {
    for (int server = 0; server < transport_->world_size(); ++server) {
      link_.Send(server, {.kind = MessageKind::kPull});
    }
  }
  const ServedWeights& served() const { return served_; }

 private:
  static std::vector<WorkerLink::Server> Servers(int ranks, bool statistics) {
    std::vector<WorkerLink::Server> servers;
    servers.reserve(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      servers.push_back({.rank = rank,
                         .requests = Channel(100 + 2 * rank),
                         .replies = Channel(101 + 2 * rank),
                         .weight_bytes = kWeights * sizeof(float),
                         .statistics_bytes = statistics && rank == 0 ? sizeof(float) : 0});
    }
    return servers;
  }
  std::vector<WorkerLink::Reply> Await(int count) {
    std::vector<WorkerLink::Reply> replies;
    while (std::ssize(replies) < count) {
      auto reply = link_.Next(TestDeadline());
      if (!reply.ok() || !*reply) {
        ADD_FAILURE() << reply.status().message();
        return replies;
      }
      replies.push_back(**std::move(reply));
    }
    return replies;
  }
  void Push(const ServerMessage& ticket, const std::vector<int64_t>& versions) {
    const auto images = static_cast<float>(ticket.rows);
    for (int server = 0; server < transport_->world_size(); ++server) {
      link_.Send(server,
                 {.kind = MessageKind::kPush,
                  .clock = pushes_,
                  .version = versions[server],
                  .first = ticket.first,
                  .rows = ticket.rows},
                 BufferOf(std::vector<float>(kWeights, images)),
                 server == 0 ? BufferOf({1}) : nullptr);
    }
    ++pushes_;
    for (const WorkerLink::Reply& reply : Await(transport_->world_size())) {
      EXPECT_EQ(reply.message.kind, MessageKind::kJudged);
      EXPECT_TRUE(reply.message.applied);
    }
  }

  Transport* const transport_;
  ServedWeights served_;
  WorkerLink link_;
  std::unique_ptr<ServerThread> thread_;
  int64_t pushes_ = 0;
};

class ServerThreadTest : public testing::TestWithParam<WorldKind> {};
INSTANTIATE_TEST_SUITE_P(Worlds, ServerThreadTest, testing::ValuesIn(AllWorldKinds()),
                         [](const auto& info) { return info.param.name; });

// Every update takes 1 from each weight, whatever the order of the pushes.
TEST_P(ServerThreadTest, ThreeRanksServeAndWork) {
  for (const auto rule : {AsynchronousConfig::ASYNCHRONOUS, AsynchronousConfig::SYNCHRONOUS}) {
    const World world = GetParam().make(kRanks);
    constexpr int64_t kTickets = 12;
    const int64_t updates = rule == AsynchronousConfig::SYNCHRONOUS ? kTickets / kRanks : kTickets;
    OnEveryRank(kRanks, [&](int r) {
      Rank rank(world[r].get(), PublishedRule(rule), kTickets * kRows);
      rank.Work();
      rank.Leave();
      EXPECT_EQ(rank.served().version(), updates);
      EXPECT_TRUE(AllAre(rank.served().weights(), 1 - updates));
    });
  }
}

// Weights that are under way when their worker leaves hold neither its server nor those of others.
TEST_P(ServerThreadTest, RanksThatHavePulledAheadLeave) {
  const World world = GetParam().make(kRanks);
  OnEveryRank(kRanks, [&](int r) {
    Rank rank(world[r].get(), PublishedRule(AsynchronousConfig::ASYNCHRONOUS), kRows);
    for (int i = 0; i < 3; ++i) rank.PullAhead();
    rank.Leave();
    EXPECT_EQ(rank.served().version(), 0);
  });
}

// A worker that says what it was not asked for ends its server's part of the world, with a reason.
TEST(ServerThreadErrorsTest, AWrongSizeIsSaid) {
  const World world = MakeTcpWorld(2);
  ServedWeights served(PublishedRule(AsynchronousConfig::ASYNCHRONOUS), 2, 100);
  served.service()->Join(1, kRows);
  ServerThread thread(world[0].get(), served.service(),
                      {.workers = {1}, .requests = Channel(100), .replies = Channel(101)});
  WorkerLink link(world[1].get(), {{.rank = 0,
                                    .requests = Channel(100),
                                    .replies = Channel(101),
                                    .weight_bytes = 2 * sizeof(float)}});
  link.Send(0, {.kind = MessageKind::kPush, .rows = 1}, BufferOf({1, 2, 3}), BufferOf({1}));
  const auto reply = link.Next(TestDeadline());
  EXPECT_THAT(reply.status().message(), HasSubstr("a gradient of another size"));
}

// As a worker that a dead server had lost, and that has not noticed.
TEST(ServerThreadErrorsTest, OneThatWasRemovedMayLeave) {
  const World world = MakeTcpWorld(2);
  {
    ServedWeights served(PublishedRule(AsynchronousConfig::ASYNCHRONOUS), 2, 100);
    served.service()->Join(1, kRows);
    ServerThread thread(world[0].get(), served.service(),
                        {.workers = {1}, .requests = Channel(100), .replies = Channel(101)});
    thread.Run([](ShardService* service) { return service->Remove(1); });
    WorkerLink link(world[1].get(), {{.rank = 0,
                                      .requests = Channel(100),
                                      .replies = Channel(101),
                                      .weight_bytes = 2 * sizeof(float)}});
    link.Leave();
    link.Finish();
  }
  EXPECT_TRUE(world[0]->EndCause().ok()) << world[0]->EndCause().message();
}

}  // namespace
}  // namespace ringtail
