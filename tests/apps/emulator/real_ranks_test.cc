// Emulations beside runs of as many real ranks, with the same config and images. With two ranks sums
// have one order only, so that what is exchanged has the same bits; with four they differ by
// rounding.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/config/text_config.h"
#include "tests/apps/emulator/tiny_emulation.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using Tensors = std::map<std::string, std::vector<float>>;

constexpr int kGlobalBatch = 8;
const std::string kFixed = "compute { fixed_ms: 4 ms_per_image: 1 update_ms: 2 } ";
const Overrides kBlocking = {"dist.local.period=3", "dist.local.overlap=false"};
const Overrides kOverlapped = {"dist.local.period=3", "dist.local.outer_learning_rate=0.7",
                               "dist.local.outer_momentum=0.6", "dist.local.rate_batch=OWN"};

class RealRanksTest : public testing::Test {
 protected:
  struct Runs {
    Tensors real, emulated;
    std::vector<nlohmann::json> real_evaluations, emulated_evaluations;
    std::vector<nlohmann::json> real_rounds, emulated_rounds;
    int64_t emulated_bytes = 0;  // by all workers
  };

  std::string Path(const std::string& name) const { return folder_.File(name); }

  Runs Train(int ranks, Overrides overrides) const {
    overrides.insert(overrides.begin(), {"dist.algorithm=\"ring\"",
                                         fmt::format("train.batch={}", kGlobalBatch / ranks)});
    Runs runs;
    const EmulationResult emulated =
        EmulateTiny(kFixed + fmt::format("workers: {}", ranks), overrides, Path("emulated"))
            .value();
    runs.emulated = ReadTensors(Path("emulated"));
    runs.emulated_evaluations = LinesOf(emulated, "evaluation");
    runs.emulated_rounds = LinesOf(emulated, "round");
    runs.emulated_bytes = emulated.summary.sent_bytes;
    std::ofstream(Path("config")) << PrintTextConfig(TinyConfig(overrides).config);
    const ProcessResult real =
        RunProcess(Launch(ranks, DogsVsCats({"train", "--config", Path("config"), "--data",
                                             TinyImages(), "--output", Path("real")})));
    EXPECT_EQ(real.exit_code, 0) << real.out << real.err;
    runs.real = ReadTensors(Path("real/final.safetensors"));
    runs.real_evaluations = ReadMetrics(Path("real/metrics.jsonl"), "evaluation");
    runs.real_rounds = ReadMetrics(Path("real/metrics.jsonl"), "round");
    return runs;
  }

  static void ExpectNear(const Runs& runs, double tolerance) {
    ASSERT_EQ(runs.emulated.size(), runs.real.size());
    for (const auto& [name, real] : runs.real) {
      const std::vector<float>& emulated = runs.emulated.at(name);
      ASSERT_EQ(emulated.size(), real.size()) << name;
      for (size_t i = 0; i < real.size(); ++i) {
        ASSERT_NEAR(emulated[i], real[i], tolerance * (1 + std::fabs(real[i]))) << name << " " << i;
      }
    }
    ASSERT_EQ(runs.emulated_evaluations.size(), runs.real_evaluations.size());
    for (size_t i = 0; i < runs.real_evaluations.size(); ++i) {
      const nlohmann::json &emulated = runs.emulated_evaluations[i],
                           &real = runs.real_evaluations[i];
      EXPECT_EQ(emulated["step"], real["step"]);
      EXPECT_NEAR(emulated["loss"], real["loss"], 10 * tolerance) << real;
    }
    ASSERT_EQ(runs.emulated_rounds.size(), runs.real_rounds.size());
    for (size_t i = 0; i < runs.real_rounds.size(); ++i) {
      const nlohmann::json& real = runs.real_rounds[i]["cosine"];
      ASSERT_EQ(runs.emulated_rounds[i]["cosine"].is_null(), real.is_null());
      if (real.is_null()) continue;  // behind codecs
      const double cosine = real;
      EXPECT_NEAR(runs.emulated_rounds[i]["cosine"], cosine,
                  100 * tolerance * (1 + std::fabs(cosine)));
    }
  }

  const TempDir folder_;
};

TEST_F(RealRanksTest, Synchronous) { ExpectNear(Train(4, {}), 1e-4); }

// Averaged weights, evaluations that lag a round behind, rounds cut by the larger images.
TEST_F(RealRanksTest, Blocking) { ExpectNear(Train(4, kBlocking), 1e-4); }
TEST_F(RealRanksTest, Overlapped) { ExpectNear(Train(4, kOverlapped), 1e-4); }

// Mixed images with soft labels, and weights of classes.
TEST_F(RealRanksTest, MixedImages) {
  Overrides rounds = kBlocking;
  rounds.insert(rounds.end(), {"data.augment.mixup.alpha=1", "data.augment.cutmix.alpha=1",
                               "data.class_balance=0.5"});
  ExpectNear(Train(4, rounds), 1e-4);
}

TEST_F(RealRanksTest, SynchronousAtFirst) {
  for (Overrides rounds : {kBlocking, kOverlapped}) {
    rounds.emplace_back("dist.local.start_epoch=1.4");
    const Runs runs = Train(4, rounds);
    ExpectNear(runs, 1e-4);
    std::filesystem::remove_all(Path("real"));
  }
}

// What the default config asks for: accumulation in each worker, scaled rates, larger images later,
// averaged weights, evaluation of both mirror images at a size of its own.
TEST_F(RealRanksTest, TheDefaultRecipe) {
  const Overrides recipe = {"optim.muon={}",
                            "optim.learning_rate=0.5",
                            "optim.weight_decay=5e-4",
                            "optim.batch_scaling.rule=SQUARE_ROOT",
                            "optim.batch_scaling.reference_batch=4",
                            "optim.warmup.epochs=1",
                            "optim.cosine={}",
                            "train.accumulation=2",
                            "train.evaluation_image_size=32",
                            "train.evaluate_flipped=true"};
  for (const Overrides& rounds : {Overrides(), kBlocking, kOverlapped}) {
    Overrides all = recipe;
    all.insert(all.end(), rounds.begin(), rounds.end());
    ExpectNear(Train(4, all), 1e-3);
    std::filesystem::remove_all(Path("real"));
  }
}

// Coding makes small differences large: with two ranks there are none.
constexpr const char* kSchemes[] = {"linear8",
                                    "qsgd.levels=7",
                                    "two_bit",
                                    "top_k.density=0.05",
                                    "top_k={ density: 0.02 sum_density: 0.1 }",
                                    "power_sgd.rank=2"};
constexpr const char* kRoutes[] = {"GATHER", "SHARDED"};

// With the fields of `where`, such as "dist.compression".
Overrides Compressed(const std::string& where, const std::string& scheme, const char* route) {
  const std::string field = where + ".scheme." + scheme;
  return {field.find('=') == std::string::npos ? field + "={}" : field, where + ".min_elements=100",
          where + ".fall_back=false", fmt::format("{}.route={}", where, route)};
}

TEST_F(RealRanksTest, CompressedRounds) {
  for (const char* scheme : kSchemes) {
    for (const char* route : kRoutes) {
      Overrides rounds = kOverlapped;
      for (std::string& field : Compressed("dist.local.compression", scheme, route)) {
        rounds.push_back(std::move(field));
      }
      SCOPED_TRACE(fmt::format("{} {}", scheme, route));
      const Runs runs = Train(2, rounds);
      ExpectNear(runs, 1e-4);
      int64_t bytes = 0;  // both ranks send as many
      for (const nlohmann::json& round : runs.real_rounds)
        bytes += round["comm_bytes"].get<int64_t>();
      EXPECT_EQ(runs.emulated_bytes, 2 * bytes);
      std::filesystem::remove_all(Path("real"));
    }
  }
}

// Layers that take turns, and running statistics of every other step.
TEST_F(RealRanksTest, GradientsThatWait) {
  Overrides fields =
      Compressed("dist.compression", "top_k={ density: 0.05 values: LEVELS4 }", "SHARDED");
  fields.insert(
      fields.end(),
      {"dist.compression.min_elements=1", "dist.compression.statistics_every_steps=2",
       "dist.compression.rule={ max_elements: 500 scheme { linear8 {} } every_steps: 3 }, "
       "{ kind: VECTOR scheme { linear8 {} } every_steps: 2 }"});
  ExpectNear(Train(2, fields), 1e-4);
}

TEST_F(RealRanksTest, CompressedGradients) {
  for (const char* scheme : kSchemes) {
    for (const char* route : kRoutes) {
      SCOPED_TRACE(fmt::format("{} {}", scheme, route));
      ExpectNear(Train(2, Compressed("dist.compression", scheme, route)), 1e-4);
      std::filesystem::remove_all(Path("real"));
    }
  }
}

}  // namespace
}  // namespace ringtail
