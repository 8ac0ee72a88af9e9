// What `train` says of several hosts, as people start it: before the first step that they are slower than
// one, and after 50 steps how right the prediction was. Two ranks of this machine are two hosts by other
// keys (host_rank_main.cc).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr int kNorms = 40;
constexpr char kHostRank[] = RT_BINARY_DIR "/tests/apps_host_rank_main";

// Each norm sums over all ranks, twice a step: hosts wait for 80 messages, where one has next to nothing to
// compute. 60 steps of 2 images on each of two ranks.
std::string SlowTogether() {
  std::string layers =
      "layer { name: 'conv' convolution { out_channels: 4 kernel: 3 stride: 4 padding: 1 } }\n";
  for (int i = 0; i < kNorms; ++i) {
    layers += fmt::format("layer {{ name: 'norm{}' batch_norm {{}} }}\n", i);
  }
  return "net { name: 'norms'\n" + layers + R"(
layer { name: "pool" global_average_pool {} }
layer { name: "fc" linear { out_features: 2 } }
layer { name: "loss" softmax_cross_entropy {} } }
data { image_size: 16 workers: 1 split { validation_fraction: 0.16667 } }
optim { learning_rate: 0.001 sgd {} }
dist { sync_batch_norm: true }
train { epochs: 6 batch: 2 }
)";
}

// Each rank computes one image, and sends 16 MB for it in rounds of one step, the most that they may be:
// one host has two images sooner.
constexpr char kRoundsOfOneStep[] = R"(
net { name: "wide"
layer { name: "conv" convolution { out_channels: 4 kernel: 3 stride: 4 padding: 1 } }
layer { name: "wide" linear { out_features: 60000 } }
layer { name: "relu" relu {} }
layer { name: "fc" linear { out_features: 2 } }
layer { name: "loss" softmax_cross_entropy {} } }
data { image_size: 16 workers: 1 split { validation_fraction: 0.16667 } }
optim { learning_rate: 0.001 sgd {} batch_scaling { reference_batch: 2 } }
dist { local { period_rule: AUTO period: 1 overlap: false } }
train { epochs: 0.5 batch: 1 }
)";

class AdvisedRunTest : public testing::Test {
 protected:
  // `program`: dogs_vs_cats, or one whose ranks are hosts.
  ProcessResult Train(const std::string& program, const std::string& text = SlowTogether()) const {
    const std::string config = folder_.File("config.textproto");
    std::ofstream(config) << text;
    return RunProcess(Launch(2, {program, "train", "--config", config, "--data", TinyImages(),
                                 "--output", folder_.File("run"), "--threads", "1"}));
  }
  std::vector<nlohmann::json> Predictions() const {
    return ReadMetrics(folder_.File("run/metrics.jsonl"), "prediction");
  }

  const TempDir folder_;
};

TEST_F(AdvisedRunTest, SlowHostsAreToldBeforeTheFirstStepAndComparedAfterFifty) {
  const ProcessResult result = Train(kHostRank);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 ranks on 2 hosts"));
  EXPECT_THAT(result.err,
              ContainsRegex("2 hosts, dense, every step: predicted [^\n]* times one host "
                            "alone [^\n]*; train on one host, 2 images in a step instead "
                            "of 4"));
  EXPECT_THAT(result.err,
              ContainsRegex("50 steps with images of 16 pixels took .* ms each, .* predicted"));
  const auto predictions = Predictions();
  ASSERT_EQ(predictions.size(), 1U);
  EXPECT_EQ(predictions.front()["step"], 55);
}

TEST_F(AdvisedRunTest, SlowHostsThatFindTheirPeriodAreToldToo) {
  const ProcessResult result = Train(kHostRank, kRoundsOfOneStep);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.err, ContainsRegex("2 hosts, dense, 1 local step: predicted [^\n]* times one "
                                        "host alone"));
}

TEST_F(AdvisedRunTest, RanksOfOneHostAreToldNothing) {
  const ProcessResult result = Train(RT_BINARY_DIR "/bin/dogs_vs_cats");
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 ranks on 1 host"));
  EXPECT_THAT(result.err, Not(HasSubstr("predicted")));
  EXPECT_TRUE(Predictions().empty());
}

}  // namespace
}  // namespace ringtail
