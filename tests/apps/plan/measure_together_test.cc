#include "apps/plan/measure_together.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/storage/file.h"
#include "dist/planner/facts_file.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using ::testing::HasSubstr;

// Of a network of two parameters, for batches of 4 and 16 images.
PlannerFacts SomeFacts() {
  PlannerFacts facts;
  facts.set_cores(1);
  for (const int batch : {4, 16}) {
    StepFacts* const step = facts.add_step();
    step->set_batch(batch);
    step->set_forward_s(batch);
    step->set_backward_s(2 * batch);
    for (const int finished : {1, 2}) step->add_finish_s(batch * finished);
  }
  SchemeFacts* const scheme = facts.add_scheme();
  scheme->set_name("linear8");
  for (const double s : {0.01, 0.02}) scheme->add_encode_s(s);
  return facts;
}

TEST(MeanFactsTest, SecondsAreMeansAndAllElseStays) {
  PlannerFacts first = SomeFacts();
  PlannerFacts second = first, third = first;
  first.set_update_s(1);
  second.set_update_s(2);
  third.set_update_s(6);
  for (PlannerFacts* const facts : {&first, &second, &third}) {
    const double s = facts->update_s();
    facts->mutable_step(0)->set_forward_s(10 * s);
    facts->mutable_step(0)->set_finish_s(0, s);
    facts->mutable_scheme(0)->set_encode_s(1, s / 10);
  }
  const PlannerFacts mean = MeanFacts(std::vector{first, second, third}).value();
  EXPECT_DOUBLE_EQ(mean.update_s(), 3);
  EXPECT_DOUBLE_EQ(mean.step(0).forward_s(), 30);
  EXPECT_DOUBLE_EQ(mean.step(0).finish_s(0), 3);
  EXPECT_DOUBLE_EQ(mean.scheme(0).encode_s(1), 0.3);
  EXPECT_EQ(mean.step(0).batch(), first.step(0).batch());
  EXPECT_DOUBLE_EQ(mean.step(1).backward_s(), first.step(1).backward_s());
  EXPECT_EQ(FactsText(MeanFacts(std::vector{first}).value()), FactsText(first));
}

TEST(MeanFactsTest, FactsOfDifferentNetworksHaveNone) {
  const PlannerFacts first = SomeFacts();
  PlannerFacts fewer = first, without = first;
  fewer.mutable_scheme(0)->mutable_encode_s()->RemoveLast();
  without.clear_step();
  for (const PlannerFacts& other : {fewer, without}) {
    const auto mean = MeanFacts(std::vector{first, other});
    EXPECT_THAT(mean.status().message(), HasSubstr("facts 0 and 1 are of different"));
  }
}

// One answer for all, about the links between them, also where the algorithm is given.
TEST(MeasureClusterTest, RanksOfAJobMeasureTogether) {
  const TempDir folder;
  std::ofstream(folder.File("tiny.textproto")) << TinyConfigText();
  const ProcessResult job =
      RunProcess(Launch(2, DogsVsCats({"plan", "--measure", "--threads", "1", "--config",
                                       folder.File("tiny.textproto"), "--save",
                                       folder.File("facts"), "--set", "dist.algorithm=ring"})));
  ASSERT_EQ(job.exit_code, 0) << job.err;
  EXPECT_THAT(job.out, HasSubstr("1 host of 2 cores, 2 ranks a host"));
  EXPECT_EQ(job.out.find("recommended"), job.out.rfind("recommended")) << job.out;
  const std::string text = ReadFileText(folder.File("facts"), 1 << 20).value();
  const PlannerFacts facts = ParseFacts(text, "facts").value();
  EXPECT_EQ(facts.cluster().ranks_per_host(), 2);
  EXPECT_GT(facts.cluster().within_host().latency_s(), 0);
  EXPECT_GT(facts.cluster().within_host().seconds_per_byte(), 0);
  EXPECT_GT(facts.update_s(), 0);
}

}  // namespace
}  // namespace ringtail
