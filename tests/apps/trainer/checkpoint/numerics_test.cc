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

TEST(NumericsTest, SaysWhatARunBeganWithIfItIsNotTheSame) {
  const Numerics bf16{.threads = 2, .isa = "avx512", .matrices = "bf16"};
  Numerics f32 = bf16, old = bf16, unknown = bf16;
  f32.matrices = "f32";
  old.matrices.clear();
  unknown.threads = 0;
  EXPECT_EQ(DescribeOtherNumerics(bf16, f32),
            "the run began with 2 threads, avx512, matrices in bf16; with 2 threads, avx512, "
            "matrices in f32 it continues just as well, but to other bits");
  EXPECT_EQ(DescribeOtherNumerics(bf16, bf16), "");
  EXPECT_EQ(DescribeOtherNumerics(old, f32), "") << "an older checkpoint";
  EXPECT_EQ(DescribeOtherNumerics(unknown, f32), "");
  f32.threads = 3;
  EXPECT_EQ(DescribeOtherNumerics(old, f32),
            "the run began with 2 threads, avx512; with 3 threads, avx512 it continues just as "
            "well, but to other bits");
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
