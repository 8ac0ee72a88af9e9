#include "apps/emulator/rules/local_rounds_rule.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/emulator/tiny_emulation.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

std::string Compute(const std::string& more) {
  return "compute { fixed_ms: 4 ms_per_image: 1 update_ms: 2 " + more + " } ";
}
constexpr int64_t kSteps = 4 * kTinyStepsPerEpoch;

enum class Form { kBlocking, kOverlapped };
constexpr Form kForms[] = {Form::kBlocking, Form::kOverlapped};

Overrides Rounds(int64_t period, Form form, const Overrides& more = {}) {
  Overrides all = {fmt::format("dist.local.period={}", period),
                   fmt::format("dist.local.overlap={}", form == Form::kOverlapped)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(LocalRoundsRuleTest, TheSameBytesWhateverTheLoadersThreads) {
  const std::string script =
      "workers: 4 compute { fixed_ms: 4 ms_per_image: 1 update_ms: 2 jitter: 0.3 } "
      "slow { worker: 1 factor: 3 }";
  for (const Form form : kForms) {
    const Overrides outer = {"dist.local.outer_momentum=0.6", "dist.local.outer_learning_rate=0.7"};
    Overrides one_thread = Rounds(3, form, outer), three_threads = one_thread;
    one_thread.push_back("data.workers=1");
    three_threads.push_back("data.workers=3");
    const EmulationResult one = EmulateTiny(script, one_thread).value();
    const EmulationResult three = EmulateTiny(script, three_threads).value();
    EXPECT_EQ(one.lines, three.lines);
    EXPECT_EQ(one.weights, three.weights);
    EXPECT_EQ(one.summary.steps, kSteps);
    EXPECT_EQ(one.summary.images, kSteps * 8);
    // The image size changes after 10 steps: 3 + 3 + 3 + 1, twice.
    EXPECT_EQ(LinesOf(one, "round").size(), 8U);
  }
}

// Plain averaging touches nothing, whatever the length of a round.
TEST(LocalRoundsRuleTest, OneWorkerHasTheBitsOfATrainer) {
  const Overrides plain = {"train.batch=8"};
  const std::vector<float> alone = TrainedWeights(plain);
  for (const Form form : kForms) {
    for (const int64_t period : {1, 7}) {
      const Overrides rounds = Rounds(period, form, plain);
      EXPECT_EQ(EmulateTiny(kFixed + "workers: 1", rounds)->weights, alone);
      // Another that never comes.
      EXPECT_EQ(EmulateTiny(kFixed + "workers: 1 join { at_s: 1e6 }", rounds)->weights, alone);
    }
  }
}

// As its outer optimizer has it: rounds of one rank do not overlap.
TEST(LocalRoundsRuleTest, OneWorkerWithMomentumHasTheBitsOfATrainer) {
  for (const Form form : kForms) {
    const Overrides rounds = Rounds(2, form, {"train.batch=8", "dist.local.outer_momentum=0.5"});
    EXPECT_EQ(EmulateTiny(kFixed + "workers: 1", rounds)->weights, TrainedWeights(rounds));
  }
}

// What is evaluated is not a round old where nothing travels.
TEST(LocalRoundsRuleTest, AWorkerThatIsAloneIsEvaluatedAsItIs) {
  const auto losses = [](Form form) {
    std::vector<double> all;
    const EmulationResult result =
        EmulateTiny(kFixed + "workers: 1 join { at_s: 1e6 }", Rounds(2, form, {"train.batch=8"}))
            .value();
    for (const nlohmann::json& line : LinesOf(result, "evaluation")) all.push_back(line["loss"]);
    return all;
  };
  EXPECT_FALSE(losses(Form::kBlocking).empty());
  EXPECT_EQ(losses(Form::kOverlapped), losses(Form::kBlocking));
}

// The common weights of the worker that joined are what is left when the other dies after the last
// change was taken, and before it has arrived.
TEST(LocalRoundsRuleTest, AWorkerThatJoinsOneHasTheSameCommonWeights) {
  const std::string script =
      kFixed + "workers: 1 between_hosts { mbit_per_s: 4 } join { at_s: 0.02 } ";
  for (const Form form : kForms) {
    const Overrides rounds = Rounds(2, form, {"train.batch=8"});
    const EmulationResult whole = EmulateTiny(script, rounds).value();
    EXPECT_EQ(LinesOf(whole, "round").front()["workers"], 1);
    EXPECT_EQ(LinesOf(whole, "round").back()["workers"], 2);
    const double taken_s = LinesOf(whole, "step").back()["virtual_s"];
    ASSERT_LT(taken_s + 1e-3, whole.summary.virtual_s);
    const std::string dies = fmt::format("kill {{ worker: 0 at_s: {} noticed_after_s: 10 }}",
                                         (taken_s + whole.summary.virtual_s) / 2);
    const EmulationResult joined = EmulateTiny(script + dies, rounds).value();
    EXPECT_EQ(joined.summary.steps, kSteps);
    EXPECT_EQ(joined.weights, whole.weights);
  }
}

// Each worker steps by the mean over its own images, and the mean of these is that over all.
TEST(LocalRoundsRuleTest, AveragingAfterEveryStepIsSynchronous) {
  const Overrides unclipped = {"optim.clip_norm=0"};
  const std::string script = kFixed + "workers: 4";
  const EmulationResult synchronous = EmulateTiny(script, unclipped).value();
  const EmulationResult local = EmulateTiny(script, Rounds(1, Form::kBlocking, unclipped)).value();
  EXPECT_LT(LargestDifference(synchronous.weights, local.weights), 1e-4);
  const EmulationResult apart = EmulateTiny(script, Rounds(5, Form::kBlocking, unclipped)).value();
  EXPECT_GT(LargestDifference(synchronous.weights, apart.weights), 1e-3);
}

TEST(LocalRoundsRuleTest, ARoundIsAsLongAsItsSlowestWorker) {
  const std::string script = kFixed + kFreeWire + "workers: 4 slow { worker: 2 factor: 5 } ";
  const EmulationResult result =
      EmulateTiny(script, Rounds(5, Form::kBlocking, {"train.epochs=1"})).value();
  EXPECT_NEAR(result.summary.virtual_s, 5 * 5 * 0.008, 1e-3);
}

// A slow wire is waited for in every round, unless the next round is computed meanwhile.
TEST(LocalRoundsRuleTest, OverlappedRoundsHideTheWire) {
  const std::string script = kFixed + "workers: 4 between_hosts { mbit_per_s: 4 }";
  const EmulationResult blocking = EmulateTiny(script, Rounds(5, Form::kBlocking)).value();
  const EmulationResult overlapped = EmulateTiny(script, Rounds(5, Form::kOverlapped)).value();
  const double exchange_s = LinesOf(blocking, "round")[0]["exchange_ms"].get<double>() / 1e3;
  // Each phase has images of another size, which count by their pixels.
  const double compute_s = 10 * 0.008 + 10 * (0.004 + 2 * 0.001 * 2.25 + 0.002);
  EXPECT_GT(exchange_s, 0.01);
  ASSERT_LT(exchange_s, 5 * 0.008) << "a round must be able to hide it";
  EXPECT_NEAR(blocking.summary.virtual_s, compute_s + 4 * exchange_s, 1e-3);
  EXPECT_NEAR(overlapped.summary.virtual_s, compute_s + exchange_s, 1e-3);
  EXPECT_GT(LargestDifference(blocking.weights, overlapped.weights), 0);
}

// AUTO finds the length that hides the exchange from virtual times.
TEST(LocalRoundsRuleTest, AutoMeasuresVirtualTimes) {
  const std::string script = kFixed + "workers: 2 between_hosts { mbit_per_s: ";
  const Overrides automatic = Rounds(
      0, Form::kOverlapped, {"dist.local.period_rule=AUTO", "train.epochs=12", "train.phase="});
  const auto last_length = [&](const std::string& rate) {
    const EmulationResult result = EmulateTiny(script + rate + " }", automatic).value();
    const std::vector<nlohmann::json> rounds = LinesOf(result, "round");
    return rounds[rounds.size() - 2]["step"].get<int64_t>() -
           rounds[rounds.size() - 3]["step"].get<int64_t>();
  };
  EXPECT_EQ(last_length("1000"), 1);
  EXPECT_GT(last_length("1"), 4);
}

// All are there at the end, whichever died or joined, and every step was computed.
TEST(LocalRoundsRuleTest, WorkersDieAndJoin) {
  const std::string base = kFixed + "workers: 2 ";
  for (const Form form : kForms) {
    const Overrides rounds = Rounds(2, form, {"dist.local.outer_momentum=0.5"});
    const EmulationResult whole = EmulateTiny(base, rounds).value();
    const EmulationResult changes =
        EmulateTiny(base + "join { at_s: 0.02 } kill { worker: 0 at_s: 0.06 noticed_after_s: 0.3 }",
                    rounds)
            .value();
    EXPECT_EQ(changes.summary.steps, kSteps);
    EXPECT_GT(changes.summary.virtual_s, whole.summary.virtual_s + 0.2);
    std::vector<int64_t> last(3);
    for (const nlohmann::json& line : LinesOf(changes, "step")) {
      last[line["worker"].get<size_t>()] = line["step"].get<int64_t>();
    }
    EXPECT_LT(last[0], kSteps);
    EXPECT_EQ(last[1], kSteps);
    EXPECT_EQ(last[2], kSteps);
    EXPECT_EQ(LinesOf(changes, "round").back()["workers"], 2);
    EXPECT_LT(LinesOf(changes, "evaluation").back()["loss"], 2);
  }
}

// At every moment, in rounds of every kind: no worker waits for ever.
TEST(LocalRoundsRuleTest, ADeathAtAnyMomentStopsNoOther) {
  for (const Form form : kForms) {
    for (int ms = 0; ms < 60; ms += 3) {
      const std::string script =
          kFixed + fmt::format(
                       "workers: 2 between_hosts {{ mbit_per_s: 20 }} kill {{ worker: 1 at_s: {} "
                       "noticed_after_s: 0.004 }}",
                       ms * 1e-3);
      const auto result = EmulateTiny(script, Rounds(2, form, {"train.epochs=1.2"}));
      ASSERT_TRUE(result.ok()) << ms << result.status().message();
      EXPECT_EQ(result->summary.steps, 6) << ms;
    }
  }
}

// Those that are left have as many images each as before, whenever they notice it.
TEST(LocalRoundsRuleTest, ChangesCountAlikeWhenADeathIsNoticedInTheMiddleOfARound) {
  const auto emulate = [](double noticed_after_s) {
    const std::string script =
        kFixed + fmt::format(
                     "workers: 3 slow {{ worker: 1 factor: 3 }} kill {{ worker: 2 at_s: 0.001 "
                     "noticed_after_s: {} }}",
                     noticed_after_s);
    return EmulateTiny(script, Rounds(5, Form::kBlocking, {"train.batch=4"})).value();
  };
  const EmulationResult amid = emulate(0.075), after = emulate(1);
  EXPECT_LT(LinesOf(amid, "round")[0]["virtual_s"], 0.9);
  EXPECT_GT(LinesOf(after, "round")[0]["virtual_s"], 0.9);
  EXPECT_EQ(amid.weights, after.weights);
}

TEST(LocalRoundsRuleTest, AllDeadIsAnError) {
  const std::string script = kFixed + "workers: 1 kill { worker: 0 at_s: 0.01 }";
  EXPECT_THAT(EmulateTiny(script, Rounds(2, Form::kBlocking)).status().message(),
              HasSubstr("no worker is left"));
}

// Worker 2 has joined, and would sit down at the end of a round that no one is left to end: while
// the others compute the next one, or between the sum and the merge.
TEST(LocalRoundsRuleTest, AllDeadButOneThatHasNotBegunIsAnError) {
  const std::string joins = "workers: 2 join { at_s: 0 } ";
  const auto all_die = [](double at_s) {
    return fmt::format("kill {{ worker: 0 at_s: {} }} kill {{ worker: 1 at_s: {} }}", at_s, at_s);
  };
  const std::string steps = "compute { fixed_ms: 100 } ";
  const Status computing =
      EmulateTiny(joins + steps + all_die(0.6), Rounds(4, Form::kOverlapped)).status();
  EXPECT_THAT(computing.message(), HasSubstr("no worker is left that has begun"));
  const std::string slow = "between_hosts { mbit_per_s: 1 } ";
  const Status merging =
      EmulateTiny(joins + steps + slow + all_die(0.41), Rounds(4, Form::kBlocking)).status();
  EXPECT_THAT(merging.message(), HasSubstr("no worker is left that has begun"));
}

// At every moment: the run ends, or an error says why not.
TEST(LocalRoundsRuleTest, AllDeadAtAnyMomentButOneThatJoined) {
  for (const Form form : kForms) {
    for (int ms = 1; ms < 80; ms += 3) {
      const std::string script = fmt::format(
          "{}workers: 2 between_hosts {{ mbit_per_s: 20 }} join {{ at_s: 0 }} "
          "kill {{ worker: 0 at_s: {} noticed_after_s: 0.004 }} "
          "kill {{ worker: 1 at_s: {} noticed_after_s: 0.004 }}",
          kFixed, ms * 1e-3, ms * 1e-3);
      const Status status = EmulateTiny(script, Rounds(2, form, {"train.epochs=1.2"})).status();
      if (status.ok()) continue;
      EXPECT_THAT(status.message(), HasSubstr("no worker is left that has begun")) << ms;
    }
  }
}

TEST(LocalRoundsRuleTest, ALossThatIsNotFiniteEndsTheRun) {
  const EmulationResult result =
      EmulateTiny(kFixed + "workers: 2",
                  Rounds(2, Form::kBlocking, {"optim.learning_rate=1e30", "optim.clip_norm=0"}))
          .value();
  EXPECT_THAT(result.summary.not_finite, HasSubstr(" of worker "));
}

Overrides Coded(const std::string& scheme) {
  return {"dist.local.compression.scheme." + scheme, "dist.local.compression.min_elements=100",
          "dist.local.compression.fall_back=false"};
}

TEST(LocalRoundsRuleTest, CodedRoundsHaveTheSameBytesWhateverTheLoadersThreads) {
  const std::string script = Compute("encode_ms: 3 decode_ms: 1") + "workers: 4";
  for (const char* scheme : {"qsgd.levels=7", "top_k.density=0.05"}) {
    Overrides one = Rounds(3, Form::kOverlapped, Coded(scheme)), three = one;
    one.emplace_back("data.workers=1");
    three.emplace_back("data.workers=3");
    const EmulationResult first = EmulateTiny(script, one).value();
    const EmulationResult second = EmulateTiny(script, three).value();
    EXPECT_EQ(first.lines, second.lines);
    EXPECT_EQ(first.weights, second.weights);
    const EmulationResult plain = EmulateTiny(script, Rounds(3, Form::kOverlapped)).value();
    EXPECT_LT(first.summary.sent_bytes, plain.summary.sent_bytes);
    EXPECT_GT(LargestDifference(first.weights, plain.weights), 0);
  }
}

// The sum that came through a codec is not that of the differences: no cosine can be had from it.
TEST(LocalRoundsRuleTest, OnlyRoundsWithoutCodecsHaveACosine) {
  const Overrides longer = {"train.epochs=8", "train.phase="};
  for (const Form form : kForms) {
    for (const char* scheme : {"top_k.density=0.01", "qsgd.levels=7"}) {
      Overrides rounds = Rounds(2, form, longer);
      const Overrides coded = Coded(scheme);
      rounds.insert(rounds.end(), coded.begin(), coded.end());
      const EmulationResult result = EmulateTiny(kFixed + "workers: 3", rounds).value();
      const std::vector<nlohmann::json> lines = LinesOf(result, "round");
      for (const nlohmann::json& line : lines) EXPECT_TRUE(line["cosine"].is_null()) << line;
      EXPECT_EQ(std::ssize(lines), result.summary.steps / 2) << "not judged: " << scheme;
    }
    Overrides drifts = Rounds(2, form, longer);
    drifts.emplace_back("dist.local.min_cosine=1");
    const EmulationResult result = EmulateTiny(kFixed + "workers: 3", drifts).value();
    const std::vector<nlohmann::json> lines = LinesOf(result, "round");
    for (const nlohmann::json& line : lines) {
      EXPECT_GE(line["cosine"], -1) << line;
      EXPECT_LE(line["cosine"], 1) << line;
    }
    EXPECT_GT(std::ssize(lines), result.summary.steps / 2) << "no mean cosine is 1";
  }
}

// Workers encode, send, and decode one after the other.
TEST(LocalRoundsRuleTest, CodingTakesVirtualTime) {
  Overrides coded = Rounds(5, Form::kBlocking, Coded("linear8={}"));
  coded.insert(coded.end(), {"train.epochs=1", "dist.local.compression.route=GATHER"});
  const std::string script = kFreeWire + "workers: 4 ";
  const double free_s = EmulateTiny(script + kFixed, coded)->summary.virtual_s;
  const double coded_s =
      EmulateTiny(script + Compute("encode_ms: 30 decode_ms: 10"), coded)->summary.virtual_s;
  EXPECT_NEAR(coded_s - free_s, 0.03 + 4 * 0.01, 1e-3);
  const double merged_s =
      EmulateTiny(script + Compute("round_ms: 30"), Rounds(1, Form::kBlocking, {"train.epochs=1"}))
          ->summary.virtual_s;
  EXPECT_NEAR(merged_s, kTinyStepsPerEpoch * 0.008 + (kTinyStepsPerEpoch - 1) * 0.03, 1e-3);
}

// What a worker sends behind its steps takes processor time from them, by byte and by message; what it waits
// for does not.
TEST(LocalRoundsRuleTest, SendingSlowsStepsDown) {
  const auto seconds = [](Form form, const std::string& cost) {
    const std::string script =
        kFixed + "workers: 4 between_hosts { mbit_per_s: 1e6 latency_us: 0 " + cost + " }";
    return EmulateTiny(script, Rounds(5, form, {"train.phase="}))->summary;
  };
  const std::string cost = "cpu_ns_per_byte: 1000";
  EXPECT_NEAR(seconds(Form::kBlocking, cost).virtual_s, seconds(Form::kBlocking, "").virtual_s,
              1e-6);
  const EmulationSummary slow = seconds(Form::kOverlapped, cost);
  // Of the last two rounds, one is not sent behind a step, and the other's cost would have come after it.
  const double bytes = static_cast<double>(slow.sent_bytes) / 4 * 3 / 4;  // 3 of 4 rounds, by each
  EXPECT_NEAR(slow.virtual_s - seconds(Form::kOverlapped, "").virtual_s, bytes * 1e-6, 1e-3);
  const double more_s = seconds(Form::kOverlapped, "cpu_us_per_message: 1000").virtual_s -
                        seconds(Form::kOverlapped, "").virtual_s;
  // At least the messages of a ring or of recursive doubling in each of 3 rounds, a millisecond each.
  EXPECT_GT(more_s, 3 * 2 * 1e-3);
  EXPECT_NEAR(more_s * 1e3, std::round(more_s * 1e3), 1e-6);
}

// Those that stay keep what they have not sent; the run continues in every case.
TEST(LocalRoundsRuleTest, WorkersOfCodedRoundsDieAndJoin) {
  for (const Form form : kForms) {
    for (int ms = 5; ms < 60; ms += 11) {
      const std::string script =
          kFixed + fmt::format(
                       "workers: 3 join {{ at_s: 0.02 }} kill {{ worker: 1 at_s: {} "
                       "noticed_after_s: 0.004 }}",
                       ms * 1e-3);
      const auto result =
          EmulateTiny(script, Rounds(2, form,
                                     {"train.batch=4", "dist.local.compression.scheme.two_bit={}",
                                      "dist.local.compression.min_elements=100",
                                      "dist.local.compression.fall_back=false"}));
      ASSERT_TRUE(result.ok()) << ms << result.status().message();
      EXPECT_LT(LinesOf(*result, "evaluation").back()["loss"], 2);
    }
  }
}

// A death before, at, and after the change from steps to rounds.
TEST(LocalRoundsRuleTest, ADeathAroundTheFirstRoundStopsNoOther) {
  for (const Form form : kForms) {
    for (int ms = 20; ms < 80; ms += 6) {
      const std::string script =
          kFixed + fmt::format(
                       "workers: 2 join {{ at_s: 0.03 }} kill {{ worker: 1 at_s: {} "
                       "noticed_after_s: 0.004 }}",
                       ms * 1e-3);
      const auto result =
          EmulateTiny(script, Rounds(2, form, {"dist.local.start_epoch=1", "train.epochs=2"}));
      ASSERT_TRUE(result.ok()) << ms << result.status().message();
      EXPECT_EQ(result->summary.steps, 2 * kTinyStepsPerEpoch) << ms;
    }
  }
}

}  // namespace
}  // namespace ringtail
