// Sweeps of a tiny network on drawn images, by each kind of update rule; and the verb as users call it.
#include "apps/lr_find/lr_find.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/stop_signal.h"
#include "core/storage/file.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

StatusOr<RateCurve> Sweep(const std::vector<std::string>& overrides,
                          const RateListener& listener = {}) {
  SetStopSignalForTest(0);
  std::vector<std::string> all = {"train.batch=40", "net.layer[dropout].dropout.rate=0"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const LoadedConfig loaded = TinyConfig(all);
  const TrainingData data = OpenUnscanned(loaded.config.data()).value();
  return SweepRates(loaded, data, DefaultRange(loaded.config.optim()), listener);
}

TEST(LrFindTest, EveryRuleFallsAndEndsInItsRange) {
  for (const char* rule : {"optim.sgd={}", "optim.adam={}", "optim.adamw={}", "optim.lamb={}",
                           "optim.lars={}", "optim.muon={}"}) {
    const LoadedConfig loaded = TinyConfig({rule});
    const RateRange range = DefaultRange(loaded.config.optim());
    const auto curve = Sweep({rule});
    ASSERT_TRUE(curve.ok()) << rule << curve.status().message();
    const auto found = SuggestRate(range, curve->points());
    ASSERT_TRUE(found.ok()) << rule << found.status().message();
    EXPECT_GT(found->valley, 3 * range.from) << rule;
    EXPECT_LT(found->valley, range.to / 3) << rule;
    EXPECT_GT(found->fall, 0.02) << rule;
  }
}

TEST(LrFindTest, TwoSweepsAreTheSameAndAWorkerMoreChangesNothing) {
  std::vector<double> heard;
  const RateCurve one =
      Sweep({}, [&](const RatePoint& point) { heard.push_back(point.loss); }).value();
  const RateCurve two = Sweep({"data.workers=1", "data.cache_mib=0"}).value();
  ASSERT_EQ(one.points().size(), two.points().size());
  ASSERT_EQ(heard.size(), one.points().size());
  for (size_t i = 0; i < heard.size(); ++i) {
    EXPECT_EQ(one.points()[i].loss, two.points()[i].loss);
    EXPECT_EQ(one.points()[i].loss, heard[i]);
  }
  EXPECT_NE(Sweep({"train.seed=2"}).value().points()[0].loss, heard[0]);
}

TEST(LrFindTest, StopsOnASignal) {
  int steps = 0;
  const auto curve = Sweep({}, [&](const RatePoint&) {
    if (++steps == 3) SetStopSignalForTest(SIGINT);
  });
  SetStopSignalForTest(0);
  EXPECT_EQ(curve.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(steps, 3);
}

TEST(LrFindTest, RangesFollowTheTrust) {
  OptimConfig config;
  EXPECT_DOUBLE_EQ(DefaultRange(config).to, 10);  // sgd is the default
  config.mutable_muon()->set_trust(0.01);
  EXPECT_DOUBLE_EQ(DefaultRange(config).from, 1e-3);
  EXPECT_DOUBLE_EQ(DefaultRange(config).to, 200);
}

// A rate found with batches of 40 stands for a lower one at the reference batch.
TEST(LrFindTest, TheSuggestionIsForTheReferenceBatch) {
  const auto configured = [](const std::vector<std::string>& overrides) {
    return AsConfigured(0.6, TinyConfig(overrides).config, /*training_images=*/400);
  };
  EXPECT_DOUBLE_EQ(configured({"train.batch=40"}), 0.6);
  const std::string reference = "optim.batch_scaling.reference_batch=10";
  EXPECT_NEAR(configured({"train.batch=40", "optim.batch_scaling.rule=LINEAR", reference}), 0.15,
              1e-12);
  EXPECT_NEAR(configured({"train.batch=40", "optim.batch_scaling.rule=SQUARE_ROOT", reference}),
              0.3, 1e-12);
  // Four times the images of the reference: the run would halve the rate.
  EXPECT_NEAR(
      configured({"train.batch=40", "train.epochs=2", "optim.batch_scaling.rule=SQUARE_ROOT",
                  "optim.batch_scaling.reference_batch=40",
                  "optim.batch_scaling.reference_images=200"}),
      1.2, 1e-12);
}

class LrFindVerbTest : public testing::Test {
 protected:
  LrFindVerbTest() {
    EXPECT_TRUE(WriteFileAtomic(folder_.File("tiny.textproto"), TinyConfigText()).ok());
  }
  ProcessResult Run(std::vector<std::string> arguments) {
    std::vector<std::string> all = {"lr-find",       "--config", folder_.File("tiny.textproto"),
                                    "--threads",     "1",        "--set",
                                    "train.batch=40"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return RunDogsVsCats(all);
  }
  TempDir folder_;
};

TEST_F(LrFindVerbTest, PrintsTableCurveAndWhatToSet) {
  const ProcessResult result = Run({"--data", TinyImages()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("rates from 0.0001 to 10 in 100 steps"));
  EXPECT_THAT(result.out, HasSubstr("      rate       loss   smoothed\n  1.00e-04"));
  EXPECT_THAT(result.out, HasSubstr("smoothed loss over the rate\n"));
  EXPECT_THAT(result.out, HasSubstr("suggested: --set optim.learning_rate="));
  EXPECT_THAT(result.out, HasSubstr("; configured: 0.05\n"));
  const auto files = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "it writes nothing";
}

TEST_F(LrFindVerbTest, JsonHasEveryPoint) {
  const ProcessResult result =
      Run({"--data", TinyImages(), "--json", "--steps", "50", "--from", "0.001", "--to", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["points"].size(), 50U);
  EXPECT_EQ(json["diverged"], false);
  EXPECT_EQ(json["batch"], 40);
  EXPECT_DOUBLE_EQ(json["points"][0]["rate"], 0.001);
  EXPECT_GT(json["points"][49]["rate"], 0.8);
  EXPECT_EQ(json["suggested_learning_rate"], json["valley_rate"]);
  EXPECT_THAT(json["set"].get<std::string>(), testing::StartsWith("optim.learning_rate=0."));
}

TEST_F(LrFindVerbTest, SaysWhatIsWrong) {
  const auto fails = [&](const std::vector<std::string>& arguments, const char* message) {
    const ProcessResult result = Run(arguments);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  fails({}, "no images are named; give --data DIR");
  fails({"--data", TinyImages(), "--from", "1", "--to", "0.1"}, "--from 1 is not below --to 0.1");
  fails({"--data", TinyImages(), "--steps", "3"}, "--steps");
  fails({"--data", TinyImages(), "--from", "nan"}, "--from: nan is not a number");
  fails({"--data", TinyImages(), "--to", "nan"}, "--to: nan is not a number");
  fails({"--data", TinyImages(), "--set", "train.batch=64"}, "do not fill one batch of 64");
  fails({"--data", TinyImages(), "--from", "1e6", "--to", "1e9"}, "begin lower (--from 1e+04)");
}

}  // namespace
}  // namespace ringtail
