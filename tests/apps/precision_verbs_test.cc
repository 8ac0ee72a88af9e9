// --precision auto, as people give it: what each verb takes, and what is remembered where.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "core/storage/file.h"
#include "layers/element_types/bf16_unit.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr char kMeasures[] = "measures steps of";

class PrecisionVerbsTest : public testing::Test {
 protected:
  PrecisionVerbsTest() { std::ofstream(Path("tiny.textproto")) << TinyConfigText(); }

  std::string Path(const std::string& name) const { return folder_.File(name); }

  // With the cache of this test, or another that is named.
  ProcessResult Run(std::vector<std::string> arguments, const std::string& cache = "cache") const {
    return RunProcess(DogsVsCats(std::move(arguments)), {"XDG_CACHE_HOME=" + Path(cache)});
  }
  // `verb` for the tiny network, on one thread.
  std::vector<std::string> Tiny(const std::string& verb, std::vector<std::string> more) const {
    std::vector<std::string> all = {verb, "--config", Path("tiny.textproto"), "--precision",
                                    "auto"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  ProcessResult Time() const {
    return Run(Tiny("time", {"--batch", "8", "--image-size", "24", "--threads", "1", "--iterations",
                             "2", "--json"}));
  }
  ProcessResult Train(const std::string& run, std::vector<std::string> more) const {
    std::vector<std::string> all = Tiny(
        "train", {"--data", TinyImages(), "--output", Path(run), "--threads", "1", "--no-report"});
    all.insert(all.end(), more.begin(), more.end());
    return Run(all);
  }
  // As if a step had been measured to take so long.
  void Remember(double float32, double bfloat16) const {
    const std::string file = Path("cache/ringtail/convolutions.json");
    Json cache = Json::parse(ReadFileText(file, 1 << 24).value());
    int changed = 0;
    for (auto& [key, choice] : cache["choices"].items()) {
      if (key.find("; precision of ") == std::string::npos) continue;
      choice["seconds"] = {{"FLOAT32", float32}, {"BFLOAT16", bfloat16}};
      ++changed;
    }
    ASSERT_EQ(changed, 1);
    std::ofstream(file) << cache.dump();
  }
  TrainConfig ConfigOf(const std::string& run) const {
    return LoadRunConfig(Path(run + "/config.textproto"), {}).value().config.train();
  }

  const TempDir folder_;
};

TEST_F(PrecisionVerbsTest, WhatOneVerbMeasuresTheOthersTake) {
  const ProcessResult unknown = Run(Tiny("summary", {"--batch", "8", "--image-size", "24"}));
  EXPECT_THAT(unknown.out, HasSubstr("AUTO has not been measured here yet")) << unknown.err;
  EXPECT_FALSE(std::filesystem::exists(Path("cache")));

  const ProcessResult measured = Time();
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_THAT(measured.err, HasSubstr(kMeasures));
  const Json json = Json::parse(measured.out);
  const double f32 = json["precision_measured"]["float32_ms"];
  const double bf16 = json["precision_measured"]["bfloat16_ms"];
  EXPECT_GT(f32, 0);
  EXPECT_GT(bf16, 0);

  for (const bool bf16_is_faster : {true, false}) {
    Remember(0.004, bf16_is_faster ? 0.002 : 0.008);
    const std::string taken = bf16_is_faster ? "BFLOAT16" : "FLOAT32";
    const ProcessResult again = Time();
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_THAT(again.err, Not(HasSubstr(kMeasures)));
    EXPECT_EQ(Json::parse(again.out)["precision"], taken);
    EXPECT_EQ(Json::parse(again.out)["layers"][0]["type"], bf16_is_faster ? "bf16" : "f32");
  }
}

TEST_F(PrecisionVerbsTest, WhoSaysNothingIsToldOfAFasterPrecision) {
  const auto train = [&](const std::string& run, std::vector<std::string> more) {
    std::vector<std::string> all = {"train",      "--config",   Path("tiny.textproto"),
                                    "--data",     TinyImages(), "--output",
                                    Path(run),    "--threads",  "1",
                                    "--no-report"};
    all.insert(all.end(), more.begin(), more.end());
    const ProcessResult result = Run(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const auto advice = HasSubstr("this processor multiplies bf16 faster: --precision auto");
  const std::string nothing = train("nothing", {});
  if (FastBf16Unit() == Bf16Unit::kNone) {
    EXPECT_THAT(nothing, Not(advice));
  } else {
    EXPECT_THAT(nothing, advice);
  }
  EXPECT_THAT(train("f32", {"--precision", "f32"}), Not(advice));
}

TEST_F(PrecisionVerbsTest, ARunKeepsWhatItTookWhateverIsMeasuredLater) {
  // Images of 24 pixels take most of the time (tiny_run.h), 8 in a step.
  ASSERT_EQ(Time().exit_code, 0);
  Remember(0.004, 0.002);
  const ProcessResult train = Train("run", {"--set", "train.epochs=3"});
  ASSERT_EQ(train.exit_code, 0) << train.err;
  EXPECT_THAT(train.out,
              HasSubstr("precision: bf16, measured 2.00 times as fast as f32 (2 against 4 "
                        "ms for 8 images of 24 pixels, forward and backward); bfloat16 "
                        "outputs of"));
  EXPECT_EQ(ConfigOf("run").precision(), AUTO);
  EXPECT_EQ(ConfigOf("run").measured_precision().precision(), BFLOAT16);

  Remember(0.002, 0.004);
  const ProcessResult other = Train("other", {"--set", "train.epochs=3"});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.out, HasSubstr("precision: f32, since bf16 was measured 0.50 times as fast"));
  EXPECT_EQ(ConfigOf("other").measured_precision().precision(), FLOAT32);
  const auto tensors = [&](const std::string& run) {
    return ReadTensors(Path(run + "/final.safetensors"));
  };
  EXPECT_NE(tensors("run"), tensors("other"));

  // With its config or with the one that it began with, where nothing was ever measured.
  for (const bool with_config : {true, false}) {
    std::vector<std::string> resume = {"train",     "--resume", "--output",
                                       Path("run"), "--data",   TinyImages(),
                                       "--threads", "1",        "--no-report"};
    if (with_config) {
      for (const char* flag : {"--precision", "auto", "--set", "train.epochs=3", "--config"}) {
        resume.emplace_back(flag);
      }
      resume.push_back(Path("tiny.textproto"));
    }
    const ProcessResult resumed = Run(resume, "nothing");
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_THAT(resumed.out, HasSubstr("precision: bf16, measured 2.00 times as fast as f32"));
    EXPECT_THAT(resumed.err, Not(HasSubstr(kMeasures)));
  }
  EXPECT_FALSE(std::filesystem::exists(Path("nothing")));
}

TEST_F(PrecisionVerbsTest, EvaluatingTakesWhatTheRunTook) {
  ASSERT_EQ(Time().exit_code, 0);
  Remember(0.004, 0.002);
  ASSERT_EQ(Train("run", {"--set", "train.epochs=3"}).exit_code, 0);
  const auto evaluate = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"evaluate", "--checkpoint", Path("run"),
                                    "--data",   TinyImages(),   "--json"};
    all.insert(all.end(), more.begin(), more.end());
    const ProcessResult result = Run(all, "nothing");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr(kMeasures)));
    return Json::parse(result.out)["loss"].get<double>();
  };
  const double loss = evaluate({});
  EXPECT_EQ(evaluate({"--precision", "auto"}), loss);
  EXPECT_EQ(evaluate({"--precision", "bf16"}), loss);
  EXPECT_NE(evaluate({"--precision", "f32"}), loss);
}

TEST_F(PrecisionVerbsTest, RanksTakeOneTogether) {
  const ProcessResult train = RunProcess(
      Launch(2, DogsVsCats(Tiny("train", {"--data", TinyImages(), "--output", Path("run"),
                                          "--threads", "1", "--no-report", "--set",
                                          "train.epochs=1", "--set", "train.batch=4"}))),
      {"XDG_CACHE_HOME=" + Path("cache")});
  ASSERT_EQ(train.exit_code, 0) << train.out << train.err;
  EXPECT_THAT(train.err, HasSubstr(kMeasures));
  const MeasuredPrecision taken = ConfigOf("run").measured_precision();
  EXPECT_GT(taken.float32_ms(), 0);
  EXPECT_EQ(taken.images(), 4);
  EXPECT_EQ(taken.image_size(), 16);
  const std::string cache = ReadFileText(Path("cache/ringtail/convolutions.json"), 1 << 24).value();
  EXPECT_THAT(cache, HasSubstr("2 ranks of "));
}

// They measure where nothing is known, and say what they take.
TEST_F(PrecisionVerbsTest, PlanAndEmulateMeasureToo) {
  const ProcessResult plan =
      Run(Tiny("plan", {"--measure", "--threads", "1", "--save", Path("facts"), "--json"}));
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.err, HasSubstr("precision: "));
  const ProcessResult emulate =
      Run(Tiny("emulate", {"--data", TinyImages(), "--threads", "1", "--measure"}));
  EXPECT_EQ(emulate.exit_code, 0) << emulate.err;
  EXPECT_THAT(emulate.err, HasSubstr("precision: "));
}

TEST_F(PrecisionVerbsTest, ALayerCannotBeAutomatic) {
  const ProcessResult result = Run(
      {"summary", "--config", Path("tiny.textproto"), "--set", "net.layer[conv2].precision=AUTO"});
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_THAT(result.err,
              HasSubstr("layer 'conv2' has the precision AUTO, which is for a whole run"));
}

}  // namespace
}  // namespace ringtail
