#include "apps/trainer/checkpoint/numerics.h"

#include <gtest/gtest.h>

#include <string>

#include "apps/algorithm_choices.h"

namespace ringtail {
namespace {

// A run that continues elsewhere, or after algorithms were measured again, keeps its own.
TEST(NumericsTest, CheckpointsAlgorithmsReplaceWhatWasMeasuredSince) {
  AlgorithmChoices& choices = ProgramAlgorithms();
  choices.Add("a shape", {.algorithm = "of the run", .seconds = {{"of the run", 1}}});
  const std::string used = UsedAlgorithms();
  choices.Add("a shape", {.algorithm = "measured since", .seconds = {}});
  KeepAlgorithms(used);
  EXPECT_EQ(choices.Find("a shape")->algorithm, "of the run");
}

TEST(NumericsTest, DamagedAlgorithmsAreIgnored) {
  AlgorithmChoices& choices = ProgramAlgorithms();
  choices.Add("a shape", {.algorithm = "measured", .seconds = {}});
  KeepAlgorithms("{\"format\": 1, \"choices\": {\"a shape\": []}}");
  KeepAlgorithms("");
  EXPECT_EQ(choices.Find("a shape")->algorithm, "measured");
}

}  // namespace
}  // namespace ringtail
