// How fast workers with servers are, by hand.
#include "dist/planner/server_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/planner/facts_file.h"

namespace ringtail {
namespace {

// A million weights: 4 MB. 10 images take 0.1 s, the optimizer `update_s`.
PlannerFacts Facts(const char* update_s = "0") {
  return ParseFacts(std::string("cores: 1  merge_s: 0  update_s: ") + update_s + R"(
      parameter { name: "w" dimension: 1000 dimension: 1000 kind: LINEAR_WEIGHT }
      step { batch: 10 forward_s: 0.04 backward_s: 0.06 finish_s: 0.06 })",
                    "facts")
      .value();
}

NetworkFacts Hosts(int hosts, double bytes_per_s) {
  const LinkModel link{.latency_s = 0, .seconds_per_byte = 1 / bytes_per_s};
  return {.links = {.within_host = link, .between_hosts = link}, .hosts = hosts};
}

constexpr double kFast = 1e12;

ServerPrediction Predict(const PlannerFacts& facts, const NetworkFacts& network,
                         ServerChoice choice) {
  choice.batch = 10;
  return PredictServers(facts, network, choice);
}

TEST(ServerModelTest, WithoutNetworkAndUpdatesAllCompute) {
  const ServerPrediction four = Predict(Facts(), Hosts(4, kFast), {.servers = 4});
  EXPECT_EQ(four.workers, 4);
  EXPECT_NEAR(four.images_per_s, 400, 0.01);
  EXPECT_EQ(four.limit, "computing");
  const ServerPrediction dedicated =
      Predict(Facts(), Hosts(4, kFast), {.servers = 1, .dedicated = true});
  EXPECT_EQ(dedicated.workers, 3);
  EXPECT_NEAR(dedicated.images_per_s, 300, 0.01);
}

// Each of four servers has a quarter of each of four updates of 0.1 s in a step of all.
TEST(ServerModelTest, UpdatesTakeTheServersCores) {
  const ServerPrediction all = Predict(Facts("0.1"), Hosts(4, kFast), {.servers = 4});
  EXPECT_NEAR(all.images_per_s, 200, 0.01);
  EXPECT_EQ(all.limit, "the updates of the servers");
  // One server makes ten updates a second at most, and computes nothing then.
  EXPECT_NEAR(Predict(Facts("0.1"), Hosts(4, kFast), {.servers = 1}).images_per_s, 100, 0.01);
  // Of 0.02 s: the others push 30 times a second, and its own worker gets what is left of its core:
  // R = 30 + (1 - 0.02 R) / 0.1.
  EXPECT_NEAR(Predict(Facts("0.02"), Hosts(4, kFast), {.servers = 1}).images_per_s, 10 * 40 / 1.2,
              0.01);
}

// 3 of 4 pushes and pulls cross the link of one server: 3/4 x 4 MB each way, at 40 MB/s.
TEST(ServerModelTest, LinksOfTheServersCarryAllWorkers) {
  const ServerPrediction one = Predict(Facts(), Hosts(4, 40e6), {.servers = 1});
  EXPECT_NEAR(one.images_per_s, 10 * 40.0 / 3, 0.01);
  EXPECT_EQ(one.limit, "the links of the servers");
  // Of four: 3/16 x 4 MB of pulls, and as much of its own worker's pushes.
  EXPECT_NEAR(Predict(Facts(), Hosts(4, 20e6), {.servers = 4}).images_per_s, 10 * 20 / 1.5, 0.01);
  // Pulls in half the bytes.
  EXPECT_NEAR(Predict(Facts(), Hosts(4, 20e6), {.servers = 4, .bytes_per_weight = 2}).images_per_s,
              10 * 20 / (0.75 * 1.5), 0.01);
}

// A push and a pull of 4 MB at 40 MB/s, one after the other and behind 0.1 s of computing.
TEST(ServerModelTest, AWorkerThatDoesNotPullAheadWaits) {
  const ServerChoice ahead{.servers = 3, .dedicated = true};
  EXPECT_NEAR(Predict(Facts(), Hosts(4, 40e6), ahead).images_per_s, 100, 0.01);
  ServerChoice waits = ahead;
  waits.overlap = false;
  EXPECT_NEAR(Predict(Facts(), Hosts(4, 40e6), waits).images_per_s, 10 / 0.3, 0.01);
  EXPECT_EQ(Predict(Facts(), Hosts(4, 20e6), ahead).limit, "the links of the workers");
}

// Computing 0.1, a quarter of the update, 3/4 x 4 x 1 MB in and out of each server.
TEST(ServerModelTest, IfAllWaitForAllEverythingAddsUp) {
  const ServerPrediction all =
      Predict(Facts("0.04"), Hosts(4, 60e6), {.servers = 4, .synchronous = true});
  EXPECT_NEAR(all.images_per_s, 40 / (0.1 + 0.01 + 2 * 3 / 60.0), 0.01);
}

TEST(ServerModelTest, SeveralGradientsInAPush) {
  const ServerChoice choice{.gradients_per_push = 4, .servers = 4};
  const ServerPrediction all = Predict(Facts("0.1"), Hosts(4, kFast), choice);
  EXPECT_NEAR(all.images_per_s, 4 * 40 / 0.5, 0.01);
}

TEST(ServerModelTest, FromAConfig) {
  AsynchronousConfig config;
  config.set_rule(AsynchronousConfig::DC_ADAPTIVE);
  config.set_pull(AsynchronousConfig::BF16);
  config.set_overlap(false);
  const ServerChoice choice = ServerChoiceOf(config, 8, 32);
  EXPECT_EQ(choice.servers, 8);
  EXPECT_EQ(choice.bytes_per_weight, 2);
  EXPECT_EQ(choice.batch, 32);
  EXPECT_FALSE(choice.overlap);
  EXPECT_FALSE(choice.synchronous);
  config.set_rule(AsynchronousConfig::SYNCHRONOUS);
  config.set_servers(2);
  EXPECT_EQ(ServerChoiceOf(config, 8, 32).servers, 2);
  EXPECT_TRUE(ServerChoiceOf(config, 8, 32).synchronous);
}

TEST(ServerModelTest, InWords) {
  EXPECT_EQ(
      Describe(Predict(Facts(), Hosts(4, 40e6), {.servers = 1})),
      "4 workers, servers on 1 of them: predicted 133.3 images/s, limited by the links of the "
      "servers");
  EXPECT_EQ(Describe(Predict(Facts(), Hosts(4, kFast), {.servers = 1, .dedicated = true})),
            "3 workers, servers on 1 more: predicted 300 images/s, limited by computing");
}

}  // namespace
}  // namespace ringtail
