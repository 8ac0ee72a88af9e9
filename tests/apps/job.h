// Jobs of several ranks, started as a user does: by ringtail_launch.
#ifndef RINGTAIL_TESTS_APPS_JOB_H_
#define RINGTAIL_TESTS_APPS_JOB_H_

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/process.h"

namespace ringtail {

// `program` on `ranks` ranks of this machine.
inline std::vector<std::string> Launch(int ranks, std::vector<std::string> program) {
  const std::string launcher = RT_BINARY_DIR "/bin/ringtail_launch";
  const std::vector<std::string> launch = {launcher,         "-n", std::to_string(ranks),
                                           "--timeout-kill", "4",  "--"};
  program.insert(program.begin(), launch.begin(), launch.end());
  return program;
}

// The lines of kind `kind` ("step", "evaluation") in the metrics.jsonl of a run.
inline std::vector<nlohmann::json> ReadMetrics(const std::string& path, const std::string& kind) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto json = nlohmann::json::parse(line);
    if (json["kind"] == kind) lines.push_back(std::move(json));
  }
  return lines;
}

// Losses and results of evaluations; each image counts once, whichever rank evaluates it.
inline void ExpectSameCurve(const std::string& run, const std::string& expected) {
  for (const char* kind : {"step", "evaluation"}) {
    const auto lines = ReadMetrics(run + "/metrics.jsonl", kind);
    const auto same = ReadMetrics(expected + "/metrics.jsonl", kind);
    ASSERT_FALSE(same.empty()) << expected;
    ASSERT_EQ(lines.size(), same.size()) << run;
    for (size_t i = 0; i < lines.size(); ++i) {
      const double loss = same[i]["loss"];
      EXPECT_NEAR(lines[i]["loss"], loss, 1e-4 * loss) << run << ", " << kind << " " << i;
      EXPECT_EQ(lines[i]["accuracy"], same[i]["accuracy"]) << run << ", " << kind << " " << i;
    }
  }
}

// Every other rank says in an error of its own that it is `rank` that is lost or hangs.
inline void ExpectOthersName(int rank, int ranks, const ProcessResult& result) {
  for (int other = 0; other < ranks; ++other) {
    if (other == rank) continue;
    const std::string blames = fmt::format(
        "\\[{0}\\] E [^\n]*(lost rank {1} |rank {1} \\([^,\n]*, pid [0-9]+\\))", other, rank);
    EXPECT_THAT(result.err, testing::ContainsRegex(blames));
  }
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_JOB_H_
