#include "apps/trainer/checkpoint/numerics.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "apps/algorithm_choices.h"


namespace ringtail {
namespace {

using Metadata = std::map<std::string, std::string>;

TEST(NumericsTest, ComeBackFromACheckpoint) {
  Metadata metadata;
  AddNumerics({.threads = 3, .isa = "avx2"}, &metadata);
  EXPECT_EQ(ReadNumerics(metadata), (Numerics{.threads = 3, .isa = "avx2"}));
  EXPECT_EQ(ReadNumerics({}), Numerics());
}

// A run that goes on elsewhere, or after the cache was measured anew, keeps its algorithms.
TEST(NumericsTest, CheckpointsAlgorithmsReplaceWhatWasMeasuredSince) {
  AlgorithmChoices& choices = ProgramAlgorithms();
  choices.Add("a shape", {.algorithm = "of the run", .seconds = {{"of the run", 1}}});
  Metadata metadata;
  AddNumerics({}, &metadata);

  choices.Add("a shape", {.algorithm = "measured since", .seconds = {}});
  KeepAlgorithms(metadata);
  EXPECT_EQ(choices.Find("a shape")->algorithm, "of the run");
}

TEST(NumericsTest, DamagedAlgorithmsAreIgnored) {
  AlgorithmChoices& choices = ProgramAlgorithms();
  choices.Add("a shape", {.algorithm = "measured", .seconds = {}});
  Metadata metadata;
  AddNumerics({}, &metadata);
  for (auto& [key, value] : metadata) value = "{\"format\": 1, \"choices\": {\"a shape\": []}}";
  KeepAlgorithms(metadata);
  KeepAlgorithms({});
  EXPECT_EQ(choices.Find("a shape")->algorithm, "measured");
}

}  // namespace
}  // namespace ringtail
