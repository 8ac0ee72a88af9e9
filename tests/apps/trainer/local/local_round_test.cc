// Rounds of local steps worked by hand, and their properties.
#include "apps/trainer/local/local_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

// Ranks of one process; the sums that a world would make.
class Ranks {
 public:
  Ranks(int count, const OuterRule& rule, bool overlapped) {
    for (int i = 0; i < count; ++i) {
      auto model =
          ParameterArena::Create({{.name = "w", .shape = {2}}}, {{.name = "mean", .shape = {1}}});
      models_.push_back(*std::move(model));
      Set(i, {1, -1});
      models_.back()->buffer_values()[0] = 5;
      rounds_.push_back(*LocalRound::Create(models_.back().get(), rule, overlapped));
    }
    weights_.assign(count, 1);
  }
  void Set(int rank, std::vector<float> values) {
    std::ranges::copy(values, models_[rank]->parameters()[0].value().begin());
  }
  std::vector<float> Own(int rank) const {
    const auto value = models_[rank]->parameters()[0].value();
    return {value.begin(), value.end()};
  }
  std::vector<float> Common(int rank) const {
    const auto weights = rounds_[rank]->common_weights();
    return {weights.begin(), weights.begin() + 2};
  }
  float& Statistic(int rank) { return models_[rank]->buffer_values()[0]; }
  LocalRound& round(int rank) { return *rounds_[rank]; }
  void Weigh(std::vector<double> weights) { weights_ = std::move(weights); }

  void Take() {
    for (size_t i = 0; i < rounds_.size(); ++i) squares_ = rounds_[i]->Take(weights_[i]);
    Sum();
  }
  // What has been taken.
  void Sum() {
    SumOf([](LocalRound& round) { return round.differences()->grads(); });
    SumOf([](LocalRound& round) { return round.statistics(); });
  }
  void Merge(int64_t number, double inner_rate = 1) {
    const double weights = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    for (auto& round : rounds_) merged_ = round->Merge(number, weights, inner_rate);
  }
  double squares() const { return squares_; }  // of the last rank
  double merged() const { return merged_; }

 private:
  template <typename Block>
  void SumOf(const Block& block) {
    std::vector<float> sum(block(*rounds_[0]).size());
    for (auto& round : rounds_) {
      const std::span<float> own = block(*round);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
    }
    for (auto& round : rounds_) std::ranges::copy(sum, block(*round).begin());
  }

  std::vector<std::unique_ptr<ParameterArena>> models_;
  std::vector<std::unique_ptr<LocalRound>> rounds_;
  std::vector<double> weights_;
  double squares_ = 0, merged_ = 0;
};

TEST(LocalRound, TheMeanOfTheRanks) {
  Ranks ranks(2, {}, /*overlapped=*/false);
  ranks.Set(0, {2, 0});
  ranks.Set(1, {4, -1});
  ranks.Statistic(0) = 1;
  ranks.Statistic(1) = 4;
  ranks.Take();
  EXPECT_DOUBLE_EQ(ranks.squares(), 9) << "(1 - 4)^2 + (-1 + 1)^2";
  ranks.Merge(0);
  EXPECT_DOUBLE_EQ(ranks.merged(), 4 + 0.25) << "the mean is (-2, -0.5)";
  for (const int rank : {0, 1}) {
    EXPECT_THAT(ranks.Own(rank), ElementsAre(3, -0.5F));
    EXPECT_THAT(ranks.Common(rank), ElementsAre(3, -0.5F));
    EXPECT_EQ(ranks.Statistic(rank), 2.5F);
  }
}

TEST(LocalRound, ARankThatSawMoreImagesCountsMore) {
  Ranks ranks(2, {}, /*overlapped=*/false);
  ranks.Weigh({3, 1});
  ranks.Set(0, {5, -1});
  ranks.Set(1, {1, 3});
  ranks.Statistic(1) = 9;
  ranks.Take();
  ranks.Merge(0);
  EXPECT_THAT(ranks.Own(0), ElementsAre(4, 0));
  EXPECT_EQ(ranks.Statistic(0), 6);
}

TEST(LocalRound, StatisticsStayIfNoRankHasAnythingToAdd) {
  for (const bool overlapped : {false, true}) {
    Ranks ranks(2, {}, overlapped);
    ranks.Weigh({0, 0});
    ranks.Statistic(0) = ranks.Statistic(1) = 8;
    ranks.Take();
    for (const int rank : {0, 1}) ranks.round(rank).TakeNothing();
    ranks.Merge(0);
    for (const int rank : {0, 1}) {
      EXPECT_THAT(ranks.Common(rank), ElementsAre(1, -1));
      EXPECT_THAT(ranks.Own(rank), ElementsAre(1, -1));
      EXPECT_EQ(ranks.Statistic(rank), 5) << overlapped;
    }
  }
}

// A step of one rank has made a weight that is not finite.
TEST(LocalRound, ARankWhoseWeightsAreNotFiniteBeginsAnew) {
  for (const bool overlapped : {false, true}) {
    Ranks ranks(2, {}, overlapped);
    ranks.Set(0, {NAN, 7});
    ranks.Set(1, {4, -1});
    EXPECT_FALSE(std::isfinite(ranks.round(0).Take(1)));
    ranks.round(0).TakeNothing();
    ranks.round(1).Take(1);
    ranks.Weigh({0, 1});
    ranks.Sum();
    ranks.Merge(0);
    for (const int rank : {0, 1}) EXPECT_THAT(ranks.Own(rank), ElementsAre(4, -1)) << overlapped;
  }
}

// What a codec sends of earlier rounds is worth the same, whichever ranks have something to add now.
TEST(LocalRound, DifferencesBehindCodecsAreDividedByTheRanks) {
  for (const std::vector<double>& weights : {std::vector<double>{1, 1}, {0, 1}, {0, 0}}) {
    Ranks ranks(2, {}, /*overlapped=*/false);
    ranks.Weigh(weights);
    ranks.Statistic(0) = ranks.Statistic(1) = 8;
    for (const int rank : {0, 1}) {
      ranks.round(rank).set_coded_ranks(2);
      if (weights[rank] > 0) ranks.round(rank).Take(weights[rank]);
      if (weights[rank] == 0) ranks.round(rank).TakeNothing();
    }
    ranks.round(0).differences()->grads()[0] = 4;  // kept before
    ranks.Sum();
    ranks.Merge(0);
    EXPECT_THAT(ranks.Own(0), ElementsAre(1 - 2, -1));
    EXPECT_EQ(ranks.Statistic(0), weights[1] > 0 ? 8 : 5);
  }
}

// DiLoCo's outer step: v = m v + D, w = w - r (D + m v). One rank moves by -1 in each of 3 rounds
// (D = 1 of the first weight), r = 0.5, m = 0.5:
//   v = 1,    w = 1    - 0.5 (1 + 0.5)   = 0.25
//   v = 1.5,  w = 0.25 - 0.5 (1 + 0.75)  = -0.625
//   v = 1.75, w = -0.625 - 0.5 (1 + 0.875) = -1.5625
TEST(LocalRound, ThreeOuterStepsWithNesterovsMomentum) {
  Ranks ranks(1, {.learning_rate = 0.5, .momentum = 0.5}, /*overlapped=*/false);
  for (const float expected : {0.25F, -0.625F, -1.5625F}) {
    const float now = ranks.Own(0)[0];
    ranks.Set(0, {now - 1, -1});
    ranks.Take();
    ranks.Merge(0);
    EXPECT_THAT(ranks.Own(0), ElementsAre(FloatEq(expected), -1));
  }
}

// SlowMo: v = m v + D / lr, w = w - r lr v, with lr = 0.1 and then 0.05.
//   v = 10,        w = 1 - 1 * 0.1 * 10   = 0
//   v = 5 + 20,    w = 0 - 1 * 0.05 * 25  = -1.25
TEST(LocalRound, SlowMomentumDividesByTheInnerRate) {
  Ranks ranks(1, {.form = OuterRule::Form::kSlowMomentum, .learning_rate = 1, .momentum = 0.5},
              /*overlapped=*/false);
  ranks.Set(0, {0, -1});
  ranks.Take();
  ranks.Merge(0, 0.1);
  EXPECT_THAT(ranks.Own(0), ElementsAre(FloatEq(0), -1));
  ranks.Set(0, {-1, -1});
  ranks.Take();
  ranks.Merge(1, 0.05);
  EXPECT_THAT(ranks.Own(0), ElementsAre(FloatEq(-1.25F), -1));
}

TEST(LocalRound, WhatIsDoneWhileTheSumTravelsIsKept) {
  Ranks ranks(2, {}, /*overlapped=*/true);
  ranks.Set(0, {3, -1});
  ranks.Set(1, {1, -1});
  ranks.Take();
  ranks.Set(0, {3, 0});   // the next round's steps: +1 of the second weight
  ranks.Set(1, {0, -1});  // -1 of the first
  ranks.Statistic(0) = 7;
  ranks.Merge(0);
  EXPECT_THAT(ranks.Common(0), ElementsAre(2, -1));
  EXPECT_THAT(ranks.Own(0), ElementsAre(2, 0));
  EXPECT_THAT(ranks.Own(1), ElementsAre(1, -1));
  EXPECT_EQ(ranks.Statistic(0), 7) << "5 + 2 since it was taken";
  // The next round offers these changes, and only these.
  ranks.Take();
  ranks.Merge(1);
  EXPECT_THAT(ranks.Common(1), ElementsAre(1.5F, -0.5F));
  EXPECT_THAT(ranks.Own(0), ElementsAre(1.5F, -0.5F));
  EXPECT_THAT(ranks.Own(1), ElementsAre(1.5F, -0.5F));
}

TEST(LocalRound, TheCommonWeightsCanBeLookedAt) {
  Ranks ranks(1, {}, /*overlapped=*/true);
  ranks.Set(0, {8, 8});
  ranks.round(0).Swap();
  EXPECT_THAT(ranks.Own(0), ElementsAre(1, -1)) << "the model holds the common weights";
  EXPECT_EQ(ranks.round(0).own_weights()[0], 8);
  ranks.round(0).Swap();
  EXPECT_THAT(ranks.Own(0), ElementsAre(8, 8));
  EXPECT_EQ(ranks.round(0).own_weights()[0], 8);
}

TEST(LocalRound, ForgettingGoesBackToTheCommonWeights) {
  for (const bool overlapped : {false, true}) {
    Ranks ranks(1, {}, overlapped);
    ranks.Set(0, {8, 8});
    ranks.Statistic(0) = 8;
    ranks.round(0).Forget();
    EXPECT_THAT(ranks.Own(0), ElementsAre(1, -1));
    EXPECT_EQ(ranks.Statistic(0), 5);
  }
}

// The sign: what lowers the loss on the ranks lowers it after the round.
TEST(LocalRound, ARoundMovesWhereTheRanksWent) {
  Ranks ranks(3, {.learning_rate = 0.7, .momentum = 0.6}, /*overlapped=*/false);
  double distance = 2;  // of the first weight to its goal, 3
  for (int round = 0; round < 4; ++round) {
    for (int rank = 0; rank < 3; ++rank) {
      const float now = ranks.Own(rank)[0];
      ranks.Set(rank, {now + 0.3F * (3 - now), -1});
    }
    ranks.Take();
    ranks.Merge(round);
    const double left = std::abs(3 - ranks.Own(0)[0]);
    EXPECT_LT(left, distance);
    distance = left;
  }
}

}  // namespace
}  // namespace ringtail
