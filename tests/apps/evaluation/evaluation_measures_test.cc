// Every measure against values computed by hand. (tests/compare/evaluation_with_sklearn.py compares
// them with scikit-learn's.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/evaluation/evaluation_summary.h"
#include "tests/apps/evaluation/four_images.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr double kTiny = 1e-12;

ScoredImages TwoClasses(const std::vector<int32_t>& labels, const std::vector<double>& second) {
  ScoredImages scored;
  scored.class_names = {"cat", "dog"};
  scored.labels = labels;
  for (size_t i = 0; i < labels.size(); ++i) {
    scored.files.push_back(std::to_string(i) + ".jpg");
    scored.probabilities.insert(scored.probabilities.end(), {1 - second[i], second[i]});
    scored.predicted.push_back(second[i] > 0.5 ? 1 : 0);
    scored.losses.push_back(-std::log(labels[i] == 1 ? second[i] : 1 - second[i]));
  }
  return scored;
}

void ExpectScore(const ClassScore& score, double precision, double recall, double f1,
                 int64_t support) {
  EXPECT_NEAR(score.precision, precision, kTiny);
  EXPECT_NEAR(score.recall, recall, kTiny);
  EXPECT_NEAR(score.f1, f1, kTiny);
  EXPECT_EQ(score.support, support);
}

TEST(ClassScoresTest, ThreeClassesByHand) {
  const ScoredImages scored = FourImages();
  const ConfusionMatrix matrix(3, scored.labels, scored.predicted);
  EXPECT_EQ(matrix.at(1, 0), 1);  // a bee, taken for an ant
  EXPECT_EQ(matrix.at(0, 1), 0);
  EXPECT_EQ(matrix.correct(), 2);
  const ClassScores scores = ScoreClasses(matrix);
  ExpectScore(scores.classes[0], 0.5, 1, 2.0 / 3, 1);
  ExpectScore(scores.classes[1], 0, 0, 0, 1);
  ExpectScore(scores.classes[2], 1, 0.5, 2.0 / 3, 2);
  ExpectScore(scores.macro, 0.5, 0.5, 4.0 / 9, 4);
  ExpectScore(scores.weighted, 0.625, 0.5, 0.5, 4);
}

TEST(ClassScoresTest, AClassWithoutImagesAndWithoutPredictionsScoresZero) {
  const std::vector<int32_t> labels = {0, 0}, predicted = {0, 0};
  const ClassScores scores = ScoreClasses(ConfusionMatrix(2, labels, predicted));
  ExpectScore(scores.classes[0], 1, 1, 1, 2);
  ExpectScore(scores.classes[1], 0, 0, 0, 0);
  ExpectScore(scores.macro, 0.5, 0.5, 0.5, 2);
  ExpectScore(scores.weighted, 1, 1, 1, 2);
}

TEST(ClassScoresTest, NoImagesAtAll) {
  ExpectScore(ScoreClasses(ConfusionMatrix(2, {}, {})).weighted, 0, 0, 0, 0);
}

TEST(ClassScoresTest, MostConfusedAreSortedByCountThenByClass) {
  const std::vector<int32_t> labels = {0, 0, 1, 1, 2, 2}, predicted = {1, 1, 0, 1, 1, 0};
  const ConfusionMatrix matrix(3, labels, predicted);
  const std::vector<Confusion> all = {{0, 1, 2}, {1, 0, 1}, {2, 0, 1}, {2, 1, 1}};
  EXPECT_EQ(MostConfused(matrix, 10), all);
  EXPECT_EQ(MostConfused(matrix, 1), std::vector<Confusion>(all.begin(), all.begin() + 1));
}

// 0.8+ 0.6+ 0.6- 0.3-: of the four pairs of a positive and a negative, one is tied.
TEST(RankingTest, TiesCountHalf) {
  const std::vector<double> scores = {0.3, 0.6, 0.8, 0.6};
  const Ranking ranking = Rank(scores, {false, true, true, false});
  EXPECT_NEAR(ranking.RocAuc(), 3.5 / 4, kTiny);
  EXPECT_NEAR(ranking.AveragePrecision(), 0.5 * 1 + 0.5 * 2 / 3, kTiny);
  ASSERT_EQ(ranking.points.size(), 3U);
  EXPECT_EQ(ranking.points[1].threshold, 0.6);
  EXPECT_EQ(ranking.points[1].true_positives, 2);
  EXPECT_EQ(ranking.points[1].false_positives, 1);
}

TEST(RankingTest, AllScoresEqualIsChance) {
  const Ranking ranking = Rank(std::vector<double>{1, 1, 1, 1}, {false, true, false, false});
  EXPECT_EQ(ranking.RocAuc(), 0.5);
  EXPECT_EQ(ranking.AveragePrecision(), 0.25);
}

TEST(RankingTest, TheReverseOrderHasNoArea) {
  const Ranking ranking = Rank(std::vector<double>{1, 2}, {true, false});
  EXPECT_EQ(ranking.RocAuc(), 0);
  EXPECT_EQ(ranking.AveragePrecision(), 0.5);
}

TEST(RankingTest, IsUndefinedIfOneSideIsMissing) {
  const std::vector<double> scores = {0.5, 0.7};
  EXPECT_TRUE(std::isnan(Rank(scores, {false, false}).RocAuc()));
  EXPECT_TRUE(std::isnan(Rank(scores, {false, false}).AveragePrecision()));
  EXPECT_TRUE(std::isnan(Rank(scores, {true, true}).RocAuc()));
  EXPECT_EQ(Rank(scores, {true, true}).AveragePrecision(), 1);
}

TEST(RankingTest, TwoClassesAreTheSecondAlone) {
  const RankingMeans means = MeanRanking(TwoClasses({0, 1, 1, 0}, {0.3, 0.6, 0.8, 0.6}));
  EXPECT_NEAR(means.roc_auc, 0.875, kTiny);
  EXPECT_NEAR(means.average_precision, 5.0 / 6, kTiny);
}

TEST(RankingTest, SeveralClassesAreOneAgainstTheRest) {
  const RankingMeans means = MeanRanking(FourImages());
  EXPECT_NEAR(means.roc_auc, (1 + 2.0 / 3 + 1) / 3, kTiny);
  EXPECT_NEAR(means.average_precision, (1 + 0.5 + 1) / 3, kTiny);
}

TEST(RankingTest, AMissingClassDoesNotCount) {
  ScoredImages scored = FourImages();
  scored.labels[1] = 0;  // no bee is left; ants: 0.6 and 0.5 are the two largest of 0.6 0.5 0.2 0.1
  const RankingMeans means = MeanRanking(scored);
  EXPECT_EQ(means.roc_auc, 1);
  EXPECT_EQ(means.average_precision, 1);
}

// A bin holds its upper end: two wrong images at 0.5 are in the first of two bins, two right ones at
// 0.6 in the second.
TEST(CalibrationTest, ByHand) {
  ScoredImages scored = FourImages();
  const Calibration calibration = Calibrate(scored, 2);
  EXPECT_EQ(calibration.bins[0].images, 2);
  EXPECT_EQ(calibration.bins[0].accuracy, 0);
  EXPECT_EQ(calibration.bins[0].confidence, 0.5);
  EXPECT_EQ(calibration.bins[1].images, 2);
  EXPECT_EQ(calibration.bins[1].accuracy, 1);
  EXPECT_NEAR(calibration.bins[1].confidence, 0.6, kTiny);
  EXPECT_NEAR(calibration.expected_error, 0.5 * 0.5 + 0.5 * 0.4, kTiny);
}

TEST(CalibrationTest, CertaintyIsInTheLastBin) {
  EXPECT_EQ(Calibrate(TwoClasses({1}, {1.0})).bins.back().images, 1);
}

// 41 of 60: the example of Wilson's interval in tables, and the ends.
TEST(WilsonIntervalTest, ByHand) {
  const Interval interval = WilsonInterval(41, 60);
  EXPECT_NEAR(interval.low, 0.55766, 1e-5);
  EXPECT_NEAR(interval.high, 0.78694, 1e-5);
  EXPECT_NEAR(WilsonInterval(0, 10).low, 0, kTiny);
  EXPECT_NEAR(WilsonInterval(0, 10).high, 3.841459 / (10 + 3.841459), 1e-6);  // z^2 / (n + z^2)
  EXPECT_NEAR(WilsonInterval(10, 10).high, 1, kTiny);
  EXPECT_EQ(WilsonInterval(0, 0).high, 1);
}

TEST(EvaluationSummaryTest, TheTextIsAClassificationReport) {
  const std::string text = SummaryText(Summarize(FourImages()), FourImages().class_names);
  EXPECT_THAT(text, HasSubstr("              precision    recall  f1-score   support\n"));
  EXPECT_THAT(text, HasSubstr("         ant       0.50      1.00      0.67         1\n"));
  EXPECT_THAT(text, HasSubstr("         cow       1.00      0.50      0.67         2\n"));
  EXPECT_THAT(text, HasSubstr("    accuracy                           0.50         4\n"));
  EXPECT_THAT(text, HasSubstr("   macro avg       0.50      0.50      0.44         4\n"));
  EXPECT_THAT(text, HasSubstr("weighted avg       0.62      0.50      0.50         4\n"));
  EXPECT_THAT(text, HasSubstr("ROC AUC 0.8889, average precision 0.8333 (mean, one against"));
  EXPECT_THAT(text, HasSubstr("most confused: bee taken for ant (1 image), cow taken for bee (1 "));
}

TEST(EvaluationSummaryTest, NamesOfClassesAreSafeForATerminal) {
  ScoredImages scored = FourImages();
  scored.class_names = {"\x1B[2J", "H\xC3\xBCndchen", "c"};
  const std::string text = SummaryText(Summarize(scored), scored.class_names);
  EXPECT_EQ(text.find('\x1B'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("\n    H\xC3\xBCndchen       0.00"));  // aligned by characters
}

TEST(EvaluationSummaryTest, JsonHasTheNamesOfScikitLearn) {
  const auto json = nlohmann::json::parse(
      SummaryJson(Summarize(FourImages()), FourImages().class_names, {.part = "all"}));
  EXPECT_EQ(json["classification_report"]["bee"]["f1-score"], 0);
  EXPECT_EQ(json["classification_report"]["macro avg"]["support"], 4);
  EXPECT_EQ(json["classification_report"]["accuracy"], 0.5);
  EXPECT_EQ(json["confusion_matrix"], nlohmann::json({{1, 0, 0}, {1, 0, 0}, {0, 1, 1}}));
  EXPECT_EQ(json["most_confused"][0]["predicted"], "ant");
  EXPECT_TRUE(json["top_5_accuracy"].is_null());
  EXPECT_NEAR(json["calibration_curve"]["prob_true"][0], 0, kTiny);
}

TEST(EvaluationSummaryTest, WhatIsUndefinedIsNull) {
  const ScoredImages scored = TwoClasses({0, 0}, {0.1, 0.7});
  const EvaluationSummary summary = Summarize(scored);
  EXPECT_THAT(SummaryText(summary, scored.class_names), HasSubstr("ROC AUC undefined, average"));
  const auto json = nlohmann::json::parse(SummaryJson(summary, {"cat", "\xFF"}, {}));
  EXPECT_TRUE(json["roc_auc_score"].is_null());
  EXPECT_TRUE(json["average_precision_score"].is_null());
}

TEST(EvaluationSummaryTest, TopFive) {
  ScoredImages scored;
  scored.class_names = {"a", "b", "c", "d", "e", "f"};
  scored.labels = {0, 5};
  scored.predicted = {1, 0};
  scored.files = {"0", "1"};
  scored.losses = {1, 1};
  scored.probabilities = {0.15, 0.2, 0.15, 0.2, 0.2, 0.1,   // fourth, equal to the third
                          0.2,  0.2, 0.2,  0.2, 0.1, 0.1};  // the last of two equal ones: sixth
  EXPECT_EQ(Summarize(scored).top_5_accuracy, 0.5);
}

}  // namespace
}  // namespace ringtail
