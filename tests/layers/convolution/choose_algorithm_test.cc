#include "layers/convolution/choose_algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parallel_for.h"
#include "core/stop_signal.h"
#include "layers/convolution/candidates.h"
#include "layers/convolution/depthwise_convolution.h"
#include "layers/convolution/measure_algorithms.h"
#include "layers/convolution/onednn_convolution.h"
#include "layers/convolution/pointwise/pointwise_convolution.h"
#include "layers/convolution/winograd/winograd_convolution.h"
#include "layers/kernels/winograd/winograd_multiply.h"

namespace ringtail {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Key;

constexpr ConvolutionDirection kDirections[] = {ConvolutionDirection::kForward,
                                                ConvolutionDirection::kBackwardData,
                                                ConvolutionDirection::kBackwardWeights};

ConvolutionProblem Problem(int64_t kernel = 3, int64_t stride = 1) {
  ConvolutionProblem problem;
  const int64_t pad = kernel / 2, lanes = RT_KERNEL(WinogradLanes)();
  problem.window = {.KH = kernel,
                    .KW = kernel,
                    .SH = stride,
                    .SW = stride,
                    .PT = pad,
                    .PL = pad,
                    .PB = pad,
                    .PR = pad};
  problem.src = {2, 32, 8, 8, lanes};
  problem.dst = {2, 32, 8 / stride, 8 / stride, lanes};
  return problem;
}

// 1x1, or 3x3 and depthwise: what has an algorithm for both gradients.
ConvolutionProblem MergedProblem(bool depthwise) {
  ConvolutionProblem problem = Problem(depthwise ? 3 : 1);
  problem.groups = depthwise ? problem.src.C : 1;
  return problem;
}

// Tests that CTest runs with a cap (TESTS_PER_ISA) do run on that instruction set.
TEST(ChooseAlgorithmTest, CapsHoldForOneDnnAndForOurKernels) {
  const char* cap = std::getenv("DNNL_MAX_CPU_ISA");
  const std::string onednn =
      CreateOneDnnConvolution(Problem(), ConvolutionDirection::kForward)->name();
  const std::string ours =
      CreateDepthwise(MergedProblem(true), ConvolutionDirection::kForward)->name();
  for (const std::string& name : {onednn, ours}) {
    if (cap == nullptr) {
      EXPECT_THAT(name, HasSubstr(":"));
    } else if (std::string(cap) == "AVX2") {
      EXPECT_THAT(name, testing::Not(HasSubstr("avx512")));
    } else if (std::string(cap) == "SSE41") {
      EXPECT_THAT(name, testing::Not(HasSubstr("avx")));
    }
  }
}

TEST(ChooseAlgorithmTest, MeasuresAllCandidatesAndRemembersTheFastest) {
  for (const ConvolutionDirection direction : kDirections) {
    AlgorithmChoices choices("", "");
    const auto chosen = ChooseAlgorithm(Problem(), direction, FASTEST, true, &choices);
    const AlgorithmChoice* choice = choices.Find(ChoiceKey(Problem(), direction));
    ASSERT_NE(choice, nullptr);
    EXPECT_EQ(choice->algorithm, chosen->name());
    EXPECT_THAT(choice->seconds, Contains(Key("winograd 4x4")));
    EXPECT_THAT(choice->seconds, Contains(Key("winograd 2x2")));
    EXPECT_EQ(choice->seconds.size(), 3U);
    for (const auto& [name, seconds] : choice->seconds) {
      EXPECT_GT(seconds, 0) << name;
      EXPECT_GE(seconds, choice->seconds.at(chosen->name())) << name;
    }
  }
}

TEST(ChooseAlgorithmTest, MeasuresNoFurtherOnceToldToStop) {
  AlgorithmChoices choices("", "");
  const auto choose = [&] {
    ChooseAlgorithm(Problem(), ConvolutionDirection::kForward, FASTEST, true, &choices);
  };
  SetStopSignalForTest(SIGTERM);
  EXPECT_THROW(choose(), MeasuringStopped);
  EXPECT_EQ(choices.Find(ChoiceKey(Problem(), ConvolutionDirection::kForward)), nullptr);
  SetStopSignalForTest(0);
  EXPECT_NO_THROW(choose());
  SetStopSignalForTest(SIGTERM);
  EXPECT_NO_THROW(choose());  // known
  SetStopSignalForTest(0);
}

TEST(ChooseAlgorithmTest, WinogradTakesAMapOfSrc) {
  for (const auto direction :
       {ConvolutionDirection::kForward, ConvolutionDirection::kBackwardWeights}) {
    for (const auto& candidate : FindCandidates(Problem(), direction)) {
      const bool winograd = candidate->name().starts_with("winograd");
      EXPECT_EQ(candidate->takes_affine(), winograd) << candidate->name();
    }
  }
}

// As if `winner` were the fastest of all.
AlgorithmChoice ChoiceOf(const std::string& winner, const std::vector<std::string>& names) {
  AlgorithmChoice choice{.algorithm = winner, .seconds = {}};
  for (const std::string& name : names) choice.seconds[name] = name == winner ? 0.25 : 0.5;
  return choice;
}

std::vector<std::string> ForwardNames() {
  std::vector<std::string> names;
  for (const auto& c : FindCandidates(Problem(), ConvolutionDirection::kForward)) {
    names.push_back(c->name());
  }
  return names;
}

std::string ChosenForward(AlgorithmChoices* choices) {
  return ChooseAlgorithm(Problem(), ConvolutionDirection::kForward, FASTEST, true, choices)->name();
}

TEST(ChooseAlgorithmTest, KnownShapesAreNotMeasuredAgain) {
  for (const std::string name : {"winograd 2x2", "winograd 4x4"}) {
    AlgorithmChoices choices("", "");
    const std::string key = ChoiceKey(Problem(), ConvolutionDirection::kForward);
    choices.Add(key, ChoiceOf(name, ForwardNames()));
    EXPECT_EQ(ChosenForward(&choices), name);
    EXPECT_EQ(choices.Find(key)->seconds.at(name), 0.25);
  }
}

// A new algorithm is tried wherever it applies, whatever a cache holds.
TEST(ChooseAlgorithmTest, ChoiceMadeBeforeThereWasAnAlgorithmIsMadeAgain) {
  const std::vector<std::string> names = ForwardNames();
  const std::string key = ChoiceKey(Problem(), ConvolutionDirection::kForward);
  for (const std::string& added : names) {
    std::vector<std::string> before = names;
    std::erase(before, added);
    AlgorithmChoices choices("", "");
    choices.Add(key, ChoiceOf(before.front(), before));
    const std::string chosen = ChosenForward(&choices);
    EXPECT_THAT(choices.Find(key)->seconds, Contains(Key(added)));
    EXPECT_EQ(choices.Find(key)->seconds.size(), names.size());
    EXPECT_EQ(choices.Find(key)->algorithm, chosen);
  }
}

// In a resumed run the bits matter more than the speed.
TEST(ChooseAlgorithmTest, ChoiceOfTheRunIsKeptWhateverWasMeasured) {
  const std::string key = ChoiceKey(Problem(), ConvolutionDirection::kForward);
  for (const std::string name : {"winograd 2x2", "winograd 4x4"}) {
    AlgorithmChoices choices("", "");
    choices.Keep(key, ChoiceOf(name, {name}));
    EXPECT_EQ(ChosenForward(&choices), name);
    EXPECT_EQ(choices.Find(key)->seconds.size(), 1U);
  }
}

TEST(ChooseAlgorithmTest, ChoiceOfAnAlgorithmThatIsGoneIsMadeAgain) {
  AlgorithmChoices choices("", "");
  const std::string key = ChoiceKey(Problem(), ConvolutionDirection::kForward);
  choices.Add(key, {.algorithm = "of an older version", .seconds = {}});
  const auto chosen =
      ChooseAlgorithm(Problem(), ConvolutionDirection::kForward, FASTEST, true, &choices);
  EXPECT_EQ(choices.Find(key)->algorithm, chosen->name());
}

TEST(ChooseAlgorithmTest, ConfigCanForceOne) {
  AlgorithmChoices choices("", "");
  for (const ConvolutionDirection direction : kDirections) {
    const auto name = [&](const ConvolutionProblem& problem, ConvolutionPolicy policy) {
      return ChooseAlgorithm(problem, direction, policy, true, &choices)->name();
    };
    EXPECT_EQ(name(Problem(), WINOGRAD_4X4), "winograd 4x4");
    EXPECT_EQ(name(Problem(), WINOGRAD_2X2), "winograd 2x2");
    EXPECT_THAT(name(Problem(), ONEDNN), testing::Not(HasSubstr("winograd")));
    EXPECT_EQ(name(Problem(3, 2), WINOGRAD_STRIDE_2), "winograd stride 2");
    EXPECT_EQ(name(Problem(1), POINTWISE), "pointwise");
    EXPECT_EQ(name(Problem(1), POINTWISE_SEPARATE), "pointwise");
    EXPECT_EQ(name(Problem(1, 2), POINTWISE), "pointwise");
    EXPECT_THAT(name(MergedProblem(true), DEPTHWISE), testing::StartsWith("depthwise"));
    EXPECT_THAT(name(MergedProblem(true), DEPTHWISE_SEPARATE), testing::StartsWith("depthwise"));
    // oneDNN computes what an algorithm does not apply to.
    const std::string onednn = CreateOneDnnConvolution(Problem(), direction)->name();
    EXPECT_THAT(name(Problem(3, 2), WINOGRAD_4X4), testing::Not(HasSubstr("winograd")));
    EXPECT_THAT(name(Problem(5), WINOGRAD_4X4), testing::Not(HasSubstr("winograd")));
    EXPECT_EQ(name(Problem(), WINOGRAD_STRIDE_2), onednn);
    EXPECT_EQ(name(Problem(), POINTWISE), onednn);
    EXPECT_EQ(name(Problem(), DEPTHWISE), onednn);
  }
}

TEST(ChooseAlgorithmTest, ConfigCanForceBothGradientsInOnePassOrTwo) {
  AlgorithmChoices choices("", "");
  const auto description = [&](bool depthwise, ConvolutionPolicy policy) {
    return ChooseAlgorithm(MergedProblem(depthwise), ConvolutionDirection::kBackward, policy, true,
                           &choices)
        ->description();
  };
  EXPECT_EQ(description(false, POINTWISE), "pointwise");
  EXPECT_EQ(description(false, POINTWISE_SEPARATE), "pointwise / pointwise");
  EXPECT_THAT(description(true, DEPTHWISE), testing::Not(HasSubstr(" / ")));
  EXPECT_THAT(description(true, DEPTHWISE_SEPARATE),
              testing::MatchesRegex("depthwise[^ ]* / depthwise[^ ]*"));
}

TEST(ChooseAlgorithmTest, WithoutMeasuringTheKnownChoiceElseOneDnn) {
  AlgorithmChoices choices("", "");
  const auto name = [&] {
    const auto direction = ConvolutionDirection::kForward;
    return ChooseAlgorithm(Problem(), direction, FASTEST, /*measure=*/false, &choices)->name();
  };
  EXPECT_EQ(name(), CreateOneDnnConvolution(Problem(), ConvolutionDirection::kForward)->name());
  const std::string key = ChoiceKey(Problem(), ConvolutionDirection::kForward);
  EXPECT_EQ(choices.Find(key), nullptr);
  choices.Add(key, {.algorithm = "winograd 2x2", .seconds = {}});
  EXPECT_EQ(name(), "winograd 2x2");
}

TEST(ChooseAlgorithmTest, KeySaysWhatASpeedDependsOn) {
  const auto key = [](const ConvolutionProblem& problem) {
    return ChoiceKey(problem, ConvolutionDirection::kForward);
  };
  ConvolutionProblem larger = Problem();
  larger.src.N = larger.dst.N = 4;
  EXPECT_NE(key(larger), key(Problem()));
  EXPECT_NE(key(Problem(5)), key(Problem()));
  EXPECT_NE(key(Problem(3, 2)), key(Problem()));
  EXPECT_NE(ChoiceKey(Problem(), ConvolutionDirection::kBackwardData), key(Problem()));
  ConvolutionProblem affine = Problem();
  affine.src_is_affine = true;
  EXPECT_NE(key(affine), key(Problem()));
  const int before = NumComputeThreads();
  const std::string now = key(Problem());
  SetNumComputeThreads(before + 1);
  EXPECT_NE(key(Problem()), now);
  SetNumComputeThreads(before);
}

TEST(ChooseAlgorithmTest, BothGradientsByOneAlgorithmOrByTwo) {
  for (const bool depthwise : {false, true}) {
    for (const bool between_batch_norms : {false, true}) {
      ConvolutionProblem problem = MergedProblem(depthwise);
      problem.src_is_affine = problem.dst_is_normalized = between_batch_norms;
      const auto direction = ConvolutionDirection::kBackward;
      const std::string merged =
          (depthwise ? CreateDepthwise(problem, direction) : CreatePointwise(problem, direction))
              ->name();
      AlgorithmChoices choices("", "");
      const auto chosen = ChooseAlgorithm(problem, direction, FASTEST, true, &choices);
      const AlgorithmChoice* choice = choices.Find(ChoiceKey(problem, direction));
      ASSERT_NE(choice, nullptr);
      EXPECT_THAT(choice->seconds, testing::UnorderedElementsAre(Key("separate"), Key(merged)));
      EXPECT_EQ(choice->algorithm, chosen->name());
      for (const auto& [name, seconds] : choice->seconds) {
        EXPECT_GT(seconds, 0) << name;
        EXPECT_GE(seconds, choice->seconds.at(chosen->name())) << name;
      }
      // The halves of the separate one were chosen, too.
      for (const auto half :
           {ConvolutionDirection::kBackwardData, ConvolutionDirection::kBackwardWeights}) {
        EXPECT_NE(choices.Find(ChoiceKey(problem, half)), nullptr);
      }
      for (const std::string& name : {merged, std::string("separate")}) {
        choices.Add(ChoiceKey(problem, direction), ChoiceOf(name, {merged, "separate"}));
        const auto known = ChooseAlgorithm(problem, direction, FASTEST, true, &choices);
        EXPECT_EQ(known->name(), name);
        EXPECT_EQ(known->takes_gradient_map(), name == merged);
        if (name == merged) {
          EXPECT_GT(known->gradient_sums_pixels(), 0);
        }
      }
    }
  }
}

TEST(ChooseAlgorithmTest, TwoAlgorithmsWhereNoneDoesBoth) {
  AlgorithmChoices choices("", "");
  const auto name = [&](const ConvolutionProblem& problem, ConvolutionPolicy policy, bool measure) {
    const auto direction = ConvolutionDirection::kBackward;
    return ChooseAlgorithm(problem, direction, policy, measure, &choices)->name();
  };
  EXPECT_EQ(name(Problem(), FASTEST, true), "separate");
  EXPECT_EQ(name(Problem(), WINOGRAD_4X4, true), "separate");
  EXPECT_EQ(name(MergedProblem(false), ONEDNN, true), "separate");
  EXPECT_EQ(name(MergedProblem(true), ONEDNN, true), "separate");
  EXPECT_EQ(name(MergedProblem(false), FASTEST, /*measure=*/false), "separate");
}

TEST(ChooseAlgorithmTest, HalvesFollowTheConfig) {
  AlgorithmChoices choices("", "");
  const auto both =
      ChooseAlgorithm(Problem(), ConvolutionDirection::kBackward, WINOGRAD_2X2, true, &choices);
  EXPECT_EQ(both->description(), "winograd 2x2 / winograd 2x2");
  EXPECT_TRUE(both->takes_affine());
  EXPECT_FALSE(both->takes_gradient_map());
}

TEST(ChooseAlgorithmTest, KeySaysWhatBatchNormsLeave) {
  const ConvolutionProblem plain = Problem();
  ConvolutionProblem affine = plain, normalized = plain;
  affine.src_is_affine = true;
  normalized.dst_is_normalized = true;
  const auto changes = [&](const ConvolutionProblem& other, ConvolutionDirection direction) {
    return ChoiceKey(other, direction) != ChoiceKey(plain, direction);
  };
  EXPECT_TRUE(changes(affine, ConvolutionDirection::kForward));
  EXPECT_TRUE(changes(affine, ConvolutionDirection::kBackward));
  EXPECT_TRUE(changes(affine, ConvolutionDirection::kBackwardWeights));
  EXPECT_TRUE(changes(affine, ConvolutionDirection::kBackwardData));
  EXPECT_TRUE(changes(normalized, ConvolutionDirection::kForward));
  EXPECT_TRUE(changes(normalized, ConvolutionDirection::kBackward));
  EXPECT_FALSE(changes(normalized, ConvolutionDirection::kBackwardWeights));
  EXPECT_FALSE(changes(normalized, ConvolutionDirection::kBackwardData));
  EXPECT_STREQ(DirectionName(ConvolutionDirection::kBackward), "backward");
}

TEST(ChooseAlgorithmTest, NoWinogradForChannelsThatDoNotFillVectors) {
  ConvolutionProblem problem = Problem();
  problem.src.C = 24 + 4;
  for (const ConvolutionDirection direction : kDirections) {
    EXPECT_EQ(CreateWinograd(problem, direction, 4), nullptr);
  }
}

}  // namespace
}  // namespace ringtail
