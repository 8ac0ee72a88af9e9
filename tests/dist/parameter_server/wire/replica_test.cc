// A server that dies, and the replica that takes its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "dist/parameter_server/presets.h"
#include "dist/parameter_server/wire/server_thread.h"
#include "dist/parameter_server/wire/worker_link.h"
#include "tests/dist/parameter_server/wire/served_weights.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

constexpr int kRanks = 3, kServers = 2;
constexpr int kMortal = 1, kReplica = 2;  // ranks of the server that has a replica, and of that
constexpr size_t kWeights = 20'000;
constexpr int64_t kRows = 4;  // of a ticket
constexpr int64_t kTickets = 12;

// When the mortal rank dies.
enum class Moment { kAsked, kPulls, kPushes, kJudged, kNever };
struct Death {
  Moment moment = Moment::kNever;
  int64_t step = 0;
};

// Server 0 on rank 0, server 1 on rank 1, its replica on rank 2; every rank works.
class Rank {
 public:
  // Pushes of rank r are 1 + r * `difference` for each image.
  Rank(Transport* transport, const AsynchronousRule& rule, float difference = 0)
      : transport_(transport),
        push_(1 + difference * static_cast<float>(transport->rank())),
        link_(transport, Servers()) {
    const int rank = transport->rank();
    const ReplicaPeer mortal{kMortal, Channel(300), Channel(301)};
    const ReplicaPeer replica{kReplica, Channel(300), Channel(301)};
    if (rank < kServers) {
      served_.emplace(rule, kWeights, kTickets * kRows, rank == 0);
      ServerThread::Options options = Options(100 + 2 * rank, link_.own_replies(rank));
      if (rank == kMortal) options.feed = replica;
      thread_ = Serve(&*served_, options);
      link_.SetOwn(rank, thread_.get());
    }
    if (rank != kReplica) return;
    copy_.emplace(rule, kWeights, kTickets * kRows, false);
    ServerThread::Options options = Options(200, link_.own_replies(kMortal));
    options.follows = mortal;
    options.took_over = [this](const Status&) { ++taken_over_; };
    copy_thread_ = Serve(&*copy_, options);
    link_.SetOwnReplica(kMortal, copy_thread_.get());
  }

  // Until there are no tickets, or until it dies.
  void Work(const Death& death) {
    for (int64_t step = 0;; ++step) {
      const auto dies = [&](Moment moment) {
        return transport_->rank() == kMortal && moment == death.moment && step == death.step;
      };
      link_.Send(0, {.kind = MessageKind::kAsk});
      if (dies(Moment::kAsked)) return Die();
      const auto answers = Await(1);
      if (answers.empty()) return;
      const ServerMessage ticket = answers[0].message;
      if (ticket.kind == MessageKind::kRoundOver) {
        thread_->Run(
            [](ShardService* service) { return service->Close({.kind = MessageKind::kEnd}); });
      }
      if (ticket.kind != MessageKind::kTicket) break;
      for (int server = 0; server < kServers; ++server) {
        link_.Send(server, {.kind = MessageKind::kPull});
      }
      if (dies(Moment::kPulls)) return Die();
      const auto weights = Await(kServers);
      if (weights.empty()) return;
      Push(ticket, weights);
      if (dies(Moment::kPushes)) return Die();
      for (const WorkerLink::Reply& reply : Await(kServers)) {
        EXPECT_TRUE(reply.message.applied) << static_cast<int>(reply.message.reason);
        ++judged_[reply.server];
      }
      if (dies(Moment::kJudged)) return Die();
    }
    Leave();
  }

  // Of server 1: its judgements that this worker has had; those that it may not have had.
  int64_t judged() const { return judged_[kMortal]; }
  int64_t pushed() const { return pushes_; }
  const ServedWeights& served() const { return *served_; }
  const ServedWeights& copy() const { return *copy_; }
  int taken_over() const { return taken_over_; }
  bool dead() const { return dead_; }

 private:
  static std::vector<WorkerLink::Server> Servers() {
    std::vector<WorkerLink::Server> servers;
    servers.reserve(kServers);
    for (int rank = 0; rank < kServers; ++rank) {
      servers.push_back({.rank = rank,
                         .requests = Channel(100 + 2 * rank),
                         .replies = Channel(101 + 2 * rank),
                         .weight_bytes = kWeights * sizeof(float)});
    }
    servers[kMortal].replica = {kReplica, Channel(200), Channel(201)};
    return servers;
  }
  static ServerThread::Options Options(int channel, std::function<void(ServerReply)> own) {
    return {.workers = {0, 1, 2},
            .requests = Channel(channel),
            .replies = Channel(channel + 1),
            .own = std::move(own)};
  }
  std::unique_ptr<ServerThread> Serve(ServedWeights* weights,
                                      const ServerThread::Options& options) {
    for (int worker = 0; worker < kRanks; ++worker) weights->service()->Join(worker, kRows);
    return std::make_unique<ServerThread>(transport_, weights->service(), options);
  }
  void Die() {
    dead_ = true;
    transport_->Abort(Status(StatusCode::kUnavailable, "killed by the test"));
  }
  void Leave() {
    link_.Leave();
    link_.Finish();
    thread_.reset();
    copy_thread_.reset();
  }
  // Empty: this rank's part has ended.
  std::vector<WorkerLink::Reply> Await(int count) {
    std::vector<WorkerLink::Reply> replies;
    while (std::ssize(replies) < count) {
      auto reply = link_.Next(TestDeadline());
      if (!reply.ok() || !*reply) {
        if (transport_->EndCause().ok()) ADD_FAILURE() << reply.status().message();
        return {};
      }
      replies.push_back(**std::move(reply));
    }
    return replies;
  }
  void Push(const ServerMessage& ticket, const std::vector<WorkerLink::Reply>& weights) {
    const auto images = static_cast<float>(ticket.rows);
    for (const WorkerLink::Reply& pulled : weights) {
      const bool first = pulled.server == 0;
      link_.Send(pulled.server,
                 {.kind = MessageKind::kPush,
                  .clock = pushes_,
                  .version = pulled.message.version,
                  .first = ticket.first,
                  .rows = ticket.rows},
                 BufferOf(std::vector<float>(kWeights, push_ * images)),
                 first ? BufferOf({1}) : nullptr);
    }
    ++pushes_;
  }

  Transport* const transport_;
  const float push_;
  std::optional<ServedWeights> served_, copy_;
  WorkerLink link_;
  std::unique_ptr<ServerThread> thread_, copy_thread_;
  int64_t pushes_ = 0;
  std::vector<int64_t> judged_ = {0, 0};
  int taken_over_ = 0;
  bool dead_ = false;
};

class ReplicaTest : public testing::TestWithParam<WorldKind> {
 protected:
  void Run(const Death& death) {
    const World world = GetParam().make(kRanks);
    for (const auto& transport : world) ASSERT_TRUE(transport->TolerateLosses(nullptr).ok());
    ranks_.clear();
    for (const auto& transport : world) {
      ranks_.push_back(
          std::make_unique<Rank>(transport.get(), PublishedRule(AsynchronousConfig::ASYNCHRONOUS)));
    }
    OnEveryRank(kRanks, [&](int r) { ranks_[r]->Work(death); });
    CheckUpdates();
    EXPECT_EQ(ranks_[kReplica]->taken_over(), ranks_[kMortal]->dead() ? 1 : 0);
    ranks_.clear();  // before the world
  }
  // Every update takes 1 from each weight.
  void CheckUpdates() const {
    const ServedWeights& copy = ranks_[kReplica]->copy();
    const auto expected = 1 - static_cast<float>(copy.version());
    EXPECT_TRUE(std::ranges::all_of(copy.weights(), [&](float v) { return v == expected; }));
    int64_t judged = 0, pushed = 0;
    for (const auto& rank : ranks_) {
      judged += rank->judged();
      pushed += rank->pushed();
    }
    EXPECT_GE(copy.version(), judged) << "an update that a worker has heard of is lost";
    EXPECT_LE(copy.version(), pushed) << "an update was made twice";
    EXPECT_TRUE(ranks_[0]->served().desk().tickets().Unused().empty());
  }
  std::vector<std::unique_ptr<Rank>> ranks_;
};
INSTANTIATE_TEST_SUITE_P(Worlds, ReplicaTest, testing::ValuesIn(TolerantWorldKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ReplicaTest, HasTheServersBits) {
  const World world = GetParam().make(kRanks);
  std::vector<float> server, replica;
  OnEveryRank(kRanks, [&](int r) {
    Rank rank(world[r].get(), PublishedRule(AsynchronousConfig::ASYNCHRONOUS), 0.1F);
    rank.Work({});
    EXPECT_EQ(rank.taken_over(), 0);
    if (r == kMortal) server = rank.served().weights();
    if (r == kReplica) replica = rank.copy().weights();
  });
  EXPECT_NE(server[0], 1);
  EXPECT_EQ(server, replica);
}

TEST_P(ReplicaTest, NoUpdateThatAWorkerHasHeardOfIsLost) {
  for (const Moment moment : {Moment::kAsked, Moment::kPulls, Moment::kPushes, Moment::kJudged}) {
    for (int64_t step = 0; step < 3; ++step) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(moment) << " step " << step);
      Run({.moment = moment, .step = step});
    }
  }
}

// Rank 0 serves in the place of whom it has lost, whether dead or not: that rank answers no more.
TEST_P(ReplicaTest, AServerThatHasLostRankZeroAnswersNothing) {
  const World world = GetParam().make(2);
  for (const auto& transport : world) ASSERT_TRUE(transport->TolerateLosses(nullptr).ok());
  ServedWeights served(PublishedRule(AsynchronousConfig::ASYNCHRONOUS), kWeights, kRows);
  served.service()->Join(1, kRows);
  int answers = 0;
  {
    ServerThread thread(world[1].get(), served.service(),
                        {.workers = {1},
                         .requests = Channel(100),
                         .replies = Channel(101),
                         .own = [&](const ServerReply&) { ++answers; },
                         .feed = ReplicaPeer{0, Channel(300), Channel(301)}});
    thread.Request({.worker = 1, .message = {.kind = MessageKind::kPull}});  // not acknowledged
    world[0]->Abort(Status(StatusCode::kUnavailable, "killed by the test"));
    const Deadline deadline = TestDeadline();
    while (world[1]->EndCause().ok() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(world[1]->EndCause().ok());
  }
  EXPECT_EQ(answers, 0);
}

}  // namespace
}  // namespace ringtail
