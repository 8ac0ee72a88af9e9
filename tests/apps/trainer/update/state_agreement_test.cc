#include "apps/trainer/update/state_agreement.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Name(int rank) { return fmt::format("rank {}", rank); }

AgreementVerdict Judge(std::vector<uint32_t> weights) {
  std::vector<StateChecksums> ranks;
  for (const uint32_t sum : weights) ranks.push_back({.weights = sum, .optimizer = 5});
  return JudgeAgreement(ranks);
}

TEST(JudgeAgreementTest, AllTheSame) {
  EXPECT_TRUE(Judge({7, 7, 7}).agreed());
  EXPECT_TRUE(Judge({7}).agreed());
}

TEST(JudgeAgreementTest, AMajorityNamesTheOthersWhicheverTheyAre) {
  for (int odd = 0; odd < 3; ++odd) {
    std::vector<uint32_t> weights = {7, 7, 7};
    weights[odd] = 9;
    const AgreementVerdict verdict = Judge(weights);
    EXPECT_FALSE(verdict.agreed());
    EXPECT_TRUE(verdict.majority);
    EXPECT_THAT(verdict.odd, ElementsAre(odd));
    EXPECT_EQ(DescribeDisagreement(verdict, Name),
              fmt::format("the weights of rank {} are not those of the other ranks", odd));
  }
  EXPECT_EQ(DescribeDisagreement(Judge({1, 7, 7, 2, 7}), Name),
            "the weights of rank 0 and of rank 3 are not those of the other ranks");
}

TEST(JudgeAgreementTest, WithoutAMajorityNoRankIsBlamed) {
  for (const std::vector<uint32_t>& weights :
       {std::vector<uint32_t>{1, 2}, {1, 1, 2, 2}, {1, 1, 2, 3}, {1, 2, 3}}) {
    const AgreementVerdict verdict = Judge(weights);
    EXPECT_FALSE(verdict.majority);
    EXPECT_THAT(verdict.odd, IsEmpty());
  }
  EXPECT_EQ(
      DescribeDisagreement(Judge({1, 2}), Name),
      "the weights of rank 0 and of rank 1 differ, and which of them is wrong cannot be told");
  EXPECT_EQ(
      DescribeDisagreement(Judge({1, 2, 2, 1}), Name),
      "the weights of rank 0, rank 3 and of rank 1, rank 2 differ, and which of them is wrong "
      "cannot be told");
}

TEST(JudgeAgreementTest, EveryPartCounts) {
  constexpr uint32_t StateChecksums::*kParts[] = {
      &StateChecksums::weights, &StateChecksums::statistics, &StateChecksums::optimizer,
      &StateChecksums::average, &StateChecksums::progress};
  for (const auto part : kParts) {
    std::vector<StateChecksums> ranks(3);
    ranks[2].*part = 1;
    const AgreementVerdict verdict = JudgeAgreement(ranks);
    EXPECT_THAT(verdict.odd, ElementsAre(2));
    EXPECT_EQ(verdict.parts.size(), 1U);
  }
}

TEST(StateChecksumsTest, OneBitAnywhereChangesOne) {
  const LoadedConfig loaded = TinyConfig();
  TrainingState state =
      *TrainingState::Create(*CreateModel(loaded), loaded.config.optim(), /*seed=*/1);
  const StateChecksums before = state.Checksums();
  EXPECT_EQ(state.Checksums(), before);
  for (const TensorView& tensor : state.Tensors()) {
    auto* values = reinterpret_cast<uint8_t*>(const_cast<std::byte*>(tensor.data.data()));
    values[tensor.data.size() - 1] ^= 1;
    EXPECT_NE(state.Checksums(), before) << tensor.name;
    values[tensor.data.size() - 1] ^= 1;
  }
  state.progress.best_accuracy = 0.5;
  EXPECT_NE(state.Checksums().progress, before.progress);
}

TEST(StateAgreementTest, AloneItIsFree) {
  TrainingWorld alone;
  StateAgreement agreement(&alone);
  EXPECT_TRUE(agreement.Check({.weights = 1}).ok());
  EXPECT_FALSE(agreement.failed());
}

}  // namespace
}  // namespace ringtail
