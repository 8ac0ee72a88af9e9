#include "apps/emulator/rules/server_rule.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/apps/emulator/tiny_emulation.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

const std::string kVaried = "compute { fixed_ms: 4 ms_per_image: 1 update_ms: 0 jitter: 0.2 } ";
constexpr int64_t kImages = 4 * kTinyStepsPerEpoch * 8;  // of the run

// A batch of 2 images for each worker, an update for each of them unless `more` says otherwise.
Overrides Rule(const std::string& rule, const Overrides& more = {}) {
  Overrides all = {"dist.asynchronous.rule=" + rule, "train.batch=2"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The share of pushes that are so late.
double ShareOf(const StalenessStatistics& staleness, size_t tau) {
  const auto& histogram = staleness.histogram();
  return tau < histogram.size()
             ? static_cast<double>(histogram[tau]) / static_cast<double>(staleness.count())
             : 0;
}

TEST(ServerRuleTest, TheSameBytesWhateverTheLoadersThreads) {
  const std::string script = kVaried + "workers: 4 slow { worker: 1 factor: 3 }";
  for (const char* rule : {"ASYNCHRONOUS", "DC_ADAPTIVE", "SYNCHRONOUS"}) {
    Overrides one_thread = Rule(rule), three_threads = one_thread;
    one_thread.push_back("data.workers=1");
    three_threads.push_back("data.workers=3");
    const EmulationResult one = EmulateTiny(script, one_thread).value();
    const EmulationResult three = EmulateTiny(script, three_threads).value();
    EXPECT_EQ(one.lines, three.lines);
    EXPECT_EQ(one.weights, three.weights);
    EXPECT_EQ(one.summary.images, kImages);
  }
}

// No gradient of one worker is late, so that every rule is the optimizer alone.
TEST(ServerRuleTest, OneWorkerHasTheBitsOfATrainer) {
  const std::vector<float> alone = TrainedWeights({});
  for (const char* rule : {"ASYNCHRONOUS", "SYNCHRONOUS", "STALE_SYNC", "SOFT_SYNC"}) {
    const Overrides overrides = Rule(rule, {"train.batch=8", "dist.asynchronous.overlap=false"});
    EXPECT_EQ(EmulateTiny(kFixed + "workers: 1", overrides)->weights, alone) << rule;
  }
}

// By one server, which clips the sum as a reducer does; by three, of which none knows the whole.
TEST(ServerRuleTest, SynchronousServersHaveTheBitsOfTheReducer) {
  for (const char* optimizer : {"optim.sgd.momentum=0.9", "optim.muon.momentum=0.9"}) {
    const Overrides clipped = {optimizer};
    const Overrides unclipped = {optimizer, "optim.clip_norm=0"};
    for (const auto& [servers, own] : {std::pair(1, clipped), std::pair(3, unclipped)}) {
      const std::string script = kFixed + "workers: 4";
      const EmulationResult reduced = EmulateTiny(script, own).value();
      Overrides overrides = Rule("SYNCHRONOUS", own);
      overrides.push_back(fmt::format("dist.asynchronous.servers={}", servers));
      const EmulationResult served = EmulateTiny(script, overrides).value();
      EXPECT_EQ(served.weights, reduced.weights) << optimizer << ", " << servers << " servers";
      EXPECT_EQ(LinesOf(served, "evaluation").back()["accuracy"],
                LinesOf(reduced, "evaluation").back()["accuracy"]);
      EXPECT_EQ(served.summary.staleness.max(), 0);
    }
  }
}

// As real ranks have them, each on the host of a worker.
TEST(ServerRuleTest, NoMoreServersThanWorkers) {
  const auto lines = [](int servers) {
    return EmulateTiny(kFixed + "workers: 2",
                       Rule("ASYNCHRONOUS", {fmt::format("dist.asynchronous.servers={}", servers)}))
        ->lines;
  };
  EXPECT_EQ(lines(8), lines(2));
  EXPECT_NE(lines(2), lines(1));
}

TEST(ServerRuleTest, WhatCannotBeEmulatedIsRefused) {
  const auto error = [](const std::string& field) {
    return EmulateTiny(kFixed + "workers: 2", Rule("ASYNCHRONOUS", {field})).status().message();
  };
  EXPECT_THAT(error("dist.asynchronous={ rule: ASYNCHRONOUS servers: 1 dedicated: true }"),
              HasSubstr("leave dedicated out"));
  EXPECT_THAT(error("dist.asynchronous.replicas=1"), HasSubstr("leave replicas out"));
}

// 2^32 images an update.
TEST(ServerRuleTest, AnUpdateOfMoreImagesThanThereAreIsRefused) {
  EXPECT_THAT(EmulateTiny(kFixed + "workers: 2",
                          Rule("ASYNCHRONOUS",
                               {"train.batch=65536", "dist.asynchronous.gradients_per_push=65536"}))
                  .status()
                  .message(),
              HasSubstr("fewer than one batch of"));
}

// While a worker computes, each of the others pushes once; with the pull before, twice.
TEST(ServerRuleTest, StalenessIsTheOtherWorkers) {
  const std::string script = kVaried + kFreeWire + "workers: 4";
  const Overrides one_server = {"dist.asynchronous.servers=1"};
  Overrides without = Rule("ASYNCHRONOUS", one_server), with = without;
  without.push_back("dist.asynchronous.overlap=false");
  with.push_back("dist.asynchronous.overlap=true");
  const EmulationResult plain = EmulateTiny(script, without).value();
  EXPECT_NEAR(plain.summary.staleness.Mean(), 3, 0.15);
  EXPECT_GT(ShareOf(plain.summary.staleness, 3), 0.4);
  const EmulationResult overlapped = EmulateTiny(script, with).value();
  EXPECT_NEAR(overlapped.summary.staleness.Mean(), 7, 0.5);  // the first are less late
}

// 1-softsync of 4 workers makes an update of 4 pushes: gradients are one update late at most.
TEST(ServerRuleTest, SoftSynchronizationCountsUpdates) {
  const std::string script = kVaried + kFreeWire + "workers: 4";
  const Overrides overrides =
      Rule("SOFT_SYNC", {"dist.asynchronous.splits=2", "dist.asynchronous.overlap=false"});
  const EmulationResult result = EmulateTiny(script, overrides).value();
  EXPECT_NEAR(result.summary.staleness.Mean(), 2, 0.6);
  EXPECT_EQ(LinesOf(result, "update")[0]["pushes"], 2);
  EXPECT_EQ(LinesOf(result, "update")[0]["images"], 4);
}

// One of four takes five times as long: all wait for it, or none does.
TEST(ServerRuleTest, ASlowWorkerHoldsOthersUpToTheBound) {
  const std::string script = kFixed + kFreeWire + "workers: 4 slow { worker: 2 factor: 5 }";
  const auto seconds = [&](const std::string& rule, const Overrides& more) {
    return EmulateTiny(script, Rule(rule, more))->summary.virtual_s;
  };
  const double synchronous = seconds("SYNCHRONOUS", {});
  const double bounded = seconds("STALE_SYNC", {"dist.asynchronous.bound=1"});
  const double free = seconds("ASYNCHRONOUS", {});
  EXPECT_GT(synchronous / free, 2.5);  // 4 workers at a fifth, or 3.2
  EXPECT_GT(bounded / free, 2);
  const EmulationResult result =
      EmulateTiny(script, Rule("STALE_SYNC",
                               {"dist.asynchronous.bound=1", "dist.asynchronous.overlap=false"}))
          .value();
  std::map<int, int64_t> steps;
  for (const auto& line : LinesOf(result, "step")) {
    steps[line["worker"]] = line["step"];
    EXPECT_LE(steps[line["worker"]] - steps[2], 2);  // one ahead, and the one it has just computed
  }
}

TEST(ServerRuleTest, GradientsThatAreTooOldAreComputedAgain) {
  const std::string script = kFixed + kFreeWire + "workers: 4 slow { worker: 2 factor: 9 }";
  const EmulationResult result =
      EmulateTiny(script, Rule("RINGMASTER", {"dist.asynchronous.discard_after=6",
                                              "dist.asynchronous.servers=1"}))
          .value();
  EXPECT_GT(result.summary.discarded, 0);
  EXPECT_LT(result.summary.staleness.max(), 6);
  EXPECT_EQ(result.summary.images, kImages + 2 * result.summary.discarded);
  int64_t applied = 0;
  for (const auto& line : LinesOf(result, "update")) applied += line["images"].get<int64_t>();
  EXPECT_EQ(applied, kImages);
}

// Every image is used once, even if workers die and join.
TEST(ServerRuleTest, WorkersDieAndJoin) {
  for (const char* rule : {"ASYNCHRONOUS", "SYNCHRONOUS", "STALE_SYNC", "DANA"}) {
    for (const int at_ms : {1, 9, 30, 33, 36}) {
      const std::string script =
          kVaried + fmt::format(
                        "workers: 4 kill {{ worker: 1 at_s: {} noticed_after_s: 0.02 }} "
                        "join {{ at_s: 0.05 }}",
                        at_ms * 1e-3);
      Overrides overrides = Rule(rule);
      if (std::string(rule) == "DANA") {
        overrides.insert(overrides.end(), {"optim.sgd={}", "optim.sgd.momentum=0"});
      }
      const auto result = EmulateTiny(script, overrides);
      ASSERT_TRUE(result.ok()) << result.status().message();
      EXPECT_THAT(result->lines, HasSubstr("joins"));
      int64_t applied = 0;
      for (const auto& line : LinesOf(*result, "update")) {
        applied += line["images"].get<int64_t>();
      }
      EXPECT_EQ(applied, kImages) << rule << " at " << at_ms;
    }
  }
}

const Overrides kCoded = {"dist.asynchronous.servers=2", "dist.compression.min_elements=1"};

// Every codec's error feedback and bytes; one that leaves nothing out changes no bit.
TEST(ServerRuleTest, PushesTravelThroughCodecs) {
  const std::string script = kFixed + kFreeWire + "workers: 3";
  const auto emulate = [&](const Overrides& more) {
    Overrides overrides = Rule("ASYNCHRONOUS", kCoded);
    overrides.insert(overrides.end(), more.begin(), more.end());
    return EmulateTiny(script, overrides).value();
  };
  const EmulationResult dense = emulate({});
  for (const char* scheme : {"linear8", "top_k", "hylo"}) {
    const EmulationResult coded = emulate({fmt::format("dist.compression.scheme.{}={{}}", scheme)});
    EXPECT_LT(coded.summary.sent_bytes, dense.summary.sent_bytes) << scheme;
    EXPECT_NE(coded.weights, dense.weights) << scheme;
    EXPECT_LT(LargestDifference(coded.weights, dense.weights), 0.7) << scheme;
    EXPECT_EQ(coded.summary.images, kImages) << scheme;
  }
  EXPECT_EQ(emulate({"dist.compression.scheme.top_k.density=1"}).weights, dense.weights);
}

// As real ones: every push is coded, from the first on, whatever that takes.
TEST(ServerRuleTest, PushesNeverTravelDense) {
  const std::string script = "compute { fixed_ms: 4 encode_ms: 1e4 decode_ms: 1e4 } workers: 1 ";
  const auto emulate = [&](const Overrides& more) {
    Overrides overrides = Rule("ASYNCHRONOUS", kCoded);
    overrides.insert(overrides.end(), {"train.batch=8", "dist.compression.scheme.linear8={}"});
    overrides.insert(overrides.end(), more.begin(), more.end());
    return EmulateTiny(script + kFreeWire, overrides).value();
  };
  const EmulationResult coded = emulate({"dist.compression.fall_back=false"});
  for (const char* field :
       {"dist.compression.fall_back=true", "dist.compression.dense_epochs=99"}) {
    const EmulationResult other = emulate({field});
    EXPECT_EQ(other.summary.sent_bytes, coded.summary.sent_bytes) << field;
    EXPECT_EQ(other.weights, coded.weights) << field;
  }
}

TEST(ServerRuleTest, WhatPushesCannotTravelByIsRefused) {
  const auto error = [](const Overrides& more) {
    Overrides overrides = Rule("ASYNCHRONOUS", kCoded);
    overrides.insert(overrides.end(), {"optim.sgd.momentum=0", "optim.sgd.nesterov=false"});
    overrides.insert(overrides.end(), more.begin(), more.end());
    return EmulateTiny(kFixed + "workers: 2", overrides).status().message();
  };
  for (const std::string scheme : {"power_sgd", "dgc"}) {
    EXPECT_THAT(error({"dist.compression.scheme." + scheme + "={}"}),
                HasSubstr(scheme + " is for gradients that all ranks exchange"));
  }
  EXPECT_THAT(error({"dist.compression.rule={ scheme { linear8 {} } every_steps: 2 }"}),
              HasSubstr("leave every_steps out"));
}

TEST(ServerRuleTest, CodingTakesTime) {
  const std::string compute = "compute { fixed_ms: 4 encode_ms: 3 decode_ms: 2 } workers: 1 ";
  const auto seconds = [&](const Overrides& more) {
    Overrides overrides =
        Rule("ASYNCHRONOUS", {"train.batch=8", "dist.asynchronous.overlap=false"});
    overrides.insert(overrides.end(), more.begin(), more.end());
    return EmulateTiny(compute + kFreeWire, overrides)->summary.virtual_s;
  };
  constexpr int64_t kSteps = kImages / 8;
  const auto steps = static_cast<double>(kSteps);
  EXPECT_NEAR(seconds({}), steps * 4e-3, 1e-5);
  EXPECT_NEAR(seconds({"dist.compression.scheme.linear8={}"}), steps * 9e-3, 2.1e-3);
}

// Differences to a key that is new in every version are zero.
TEST(ServerRuleTest, PullsInFewerBytes) {
  const std::string script = kFixed + kFreeWire + "workers: 3";
  const auto emulate = [&](const Overrides& more) {
    return EmulateTiny(script, Rule("ASYNCHRONOUS", more)).value();
  };
  const EmulationResult floats = emulate({});
  const EmulationResult halves = emulate({"dist.asynchronous.pull=BF16"});
  const EmulationResult bytes = emulate({"dist.asynchronous.pull=DELTA"});
  EXPECT_LT(halves.summary.sent_bytes, 0.8 * floats.summary.sent_bytes);
  EXPECT_LT(bytes.summary.sent_bytes, 0.9 * halves.summary.sent_bytes);
  EXPECT_NE(halves.weights, floats.weights);
  EXPECT_LT(LargestDifference(halves.weights, floats.weights), 0.1);
  EXPECT_LT(LargestDifference(bytes.weights, floats.weights), 0.1);
  const EmulationResult keys =
      emulate({"dist.asynchronous.pull=DELTA", "dist.asynchronous.key_versions=1"});
  EXPECT_EQ(keys.weights, floats.weights);
}

TEST(ServerRuleTest, ARunThatDivergesSaysWhatToChange) {
  const EmulationResult result =
      EmulateTiny(kFixed + "workers: 4",
                  Rule("ASYNCHRONOUS", {"dist.asynchronous.as_published=true", "optim.clip_norm=0",
                                        "optim.learning_rate=20"}))
          .value();
  EXPECT_THAT(result.summary.diverges, HasSubstr("chance has 0.693"));
  EXPECT_THAT(result.summary.diverges, HasSubstr("dist.asynchronous.weight: INVERSE"));
  EXPECT_EQ(EmulateTiny(kFixed + "workers: 4", Rule("ASYNCHRONOUS"))->summary.diverges, "");
}

TEST(ServerRuleTest, ARunThatDivergesEnds) {
  const EmulationResult result =
      EmulateTiny(kFixed + "workers: 4", Rule("ASYNCHRONOUS", {"optim.learning_rate=1e30"}))
          .value();
  EXPECT_THAT(result.summary.not_finite, HasSubstr("gradients in a row"));
}

TEST(ServerRuleTest, RefusesWhatItCannotDo) {
  const std::string script = kFixed + "workers: 4";
  EXPECT_THAT(EmulateTiny(script, Rule("DANA")).status().message(), HasSubstr("momentum"));
  EXPECT_THAT(
      EmulateTiny(script, Rule("ASYNCHRONOUS", {"optim.batch_growth={}"})).status().message(),
      HasSubstr("batch_growth"));
}

}  // namespace
}  // namespace ringtail
