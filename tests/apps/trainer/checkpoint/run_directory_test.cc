#include "apps/trainer/checkpoint/run_directory.h"

#include <gtest/gtest.h>

#include "tests/apps/job.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

// The rank that wrote has died before or after it wrote the line of step 5.
TEST(RunDirectoryTest, ARankThatTakesOverWritesTheLastStepOnce) {
  for (const int64_t written : {4, 5}) {
    const TempDir folder;
    {
      const auto directory = RunDirectory::Open(folder.path()).value();
      ASSERT_TRUE(directory->Begin({}, {}, -1).ok());
      for (int64_t step = 1; step <= written; ++step) directory->Record({.step = step});
    }
    const auto heir = RunDirectory::Open(folder.path()).value();
    heir->RecordLate({{.step = 5, .loss = 0.5}, {.kind = Metrics::Kind::kEvaluation, .step = 5}});
    const auto lines = ReadMetrics(folder.File("metrics.jsonl"), "step");
    ASSERT_EQ(lines.size(), 5U) << written;
    for (int64_t step = 1; step <= 5; ++step) EXPECT_EQ(lines[step - 1]["step"], step);
    EXPECT_EQ(lines.back()["loss"], 0.5);
    EXPECT_EQ(ReadMetrics(folder.File("metrics.jsonl"), "evaluation").size(), 1U);
  }
}

}  // namespace
}  // namespace ringtail
