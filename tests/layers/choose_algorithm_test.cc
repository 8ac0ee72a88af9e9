#include "layers/convolution/choose_algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/parallel_for.h"
#include "layers/convolution/onednn_convolution.h"
#include "layers/convolution/winograd_convolution.h"
#include "layers/kernels/winograd_multiply.h"

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

TEST(ChooseAlgorithmTest, WinogradTakesAMapOfSrc) {
  for (const auto direction :
       {ConvolutionDirection::kForward, ConvolutionDirection::kBackwardWeights}) {
    for (const auto& candidate : ConvolutionCandidates(Problem(), direction)) {
      const bool winograd = candidate->name().starts_with("winograd");
      EXPECT_EQ(candidate->takes_affine(), winograd) << candidate->name();
    }
  }
}

TEST(ChooseAlgorithmTest, WhatIsKnownIsNotMeasuredAgain) {
  for (const std::string name : {"winograd 2x2", "winograd 4x4"}) {
    AlgorithmChoices choices("", "");
    const std::string key = ChoiceKey(Problem(), ConvolutionDirection::kForward);
    choices.Add(key, {.algorithm = name, .seconds = {{name, 1}}});
    const auto chosen =
        ChooseAlgorithm(Problem(), ConvolutionDirection::kForward, FASTEST, true, &choices);
    EXPECT_EQ(chosen->name(), name);
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
    // Where Winograd does not apply, oneDNN does it.
    EXPECT_THAT(name(Problem(3, 2), WINOGRAD_4X4), testing::Not(HasSubstr("winograd")));
    EXPECT_THAT(name(Problem(5), WINOGRAD_4X4), testing::Not(HasSubstr("winograd")));
  }
}

TEST(ChooseAlgorithmTest, WithoutMeasuringWhatIsKnownElseOneDnn) {
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

TEST(ChooseAlgorithmTest, NoWinogradForChannelsThatDoNotFillVectors) {
  ConvolutionProblem problem = Problem();
  problem.src.C = 24 + 4;
  for (const ConvolutionDirection direction : kDirections) {
    EXPECT_EQ(CreateWinograd(problem, direction, 4), nullptr);
  }
}

}  // namespace
}  // namespace ringtail
