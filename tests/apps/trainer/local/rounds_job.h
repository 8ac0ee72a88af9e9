// Jobs that train in local rounds, for tests of what becomes of them.
#ifndef RINGTAIL_TESTS_APPS_TRAINER_LOCAL_ROUNDS_JOB_H_
#define RINGTAIL_TESTS_APPS_TRAINER_LOCAL_ROUNDS_JOB_H_

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {

inline constexpr char kFile[] = "/final.safetensors";

// Local rounds as people set them; each with state of its own.
inline const std::vector<std::string> kBlocking = {"dist.local.period=3",
                                                   "dist.local.overlap=false"};
inline const std::vector<std::string> kOverlapped = {
    "dist.local.period=3", "dist.local.outer_learning_rate=0.7", "dist.local.outer_momentum=0.6"};
inline const std::vector<std::string> kCompressed = {
    "dist.local.period=2",
    "dist.local.outer_form=SLOW_MOMENTUM",
    "dist.local.outer_momentum=0.3",
    "dist.local.compression.scheme.two_bit={}",
    "dist.local.compression.min_elements=0",
    "dist.local.compression.fall_back=false",
    "dist.local.compression.route=GATHER"};  // the cheapest may vary between runs

class LocalRoundsTest : public testing::Test {
 protected:
  LocalRoundsTest() { WriteConfig({}); }
  // Batch norm and dropout are on; sums of three ranks always have the same order.
  void WriteConfig(std::vector<std::string> overrides) const {
    overrides.insert(overrides.begin(),
                     {"train.batch=2", "dist.algorithm=\"ring\"", "train.keep_checkpoints=99"});
    std::ofstream(Path("config.textproto")) << PrintTextConfig(TinyConfig(overrides).config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  std::vector<std::string> Train(const std::string& run, const std::vector<std::string>& sets,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"train",  "--config",   Path("config.textproto"),
                                          "--data", TinyImages(), "--output",
                                          Path(run)};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return DogsVsCats(arguments);
  }
  void RunJob(const std::string& run, int ranks, const std::vector<std::string>& sets,
              const std::vector<std::string>& more = {}) const {
    const ProcessResult result = RunProcess(Launch(ranks, Train(run, sets, more)));
    ASSERT_EQ(result.exit_code, 0) << run << result.out << result.err;
  }
  ProcessResult RunWithFault(int ranks, const std::string& run, const std::string& fault, int rank,
                             int64_t step) const {
    const std::string rank_main = RT_BINARY_DIR "/tests/apps_training_rank_main";
    return RunProcess(Launch(ranks, {rank_main, Path("config.textproto"), Path(run), fault,
                                     std::to_string(rank), std::to_string(step)}));
  }
  std::map<std::string, std::vector<float>> Final(const std::string& run) const {
    return ReadTensors(Path(run + kFile));
  }
  std::vector<nlohmann::json> Lines(const std::string& run, const std::string& kind) const {
    return ReadMetrics(Path(run + "/metrics.jsonl"), kind);
  }

  // Of each round.
  std::vector<int64_t> LocalSteps(const std::string& run) const {
    std::vector<int64_t> steps;
    for (const auto& round : Lines(run, "round")) steps.push_back(round["local_steps"]);
    return steps;
  }

  const TempDir folder_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_TRAINER_LOCAL_ROUNDS_JOB_H_
