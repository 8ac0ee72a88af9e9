#include "apps/evaluation/class_scores.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace ringtail {
namespace {

double Quotient(double a, double b) { return b == 0 ? 0 : a / b; }

void AddWeighted(const ClassScore& score, double weight, ClassScore* sum) {
  sum->precision += weight * score.precision;
  sum->recall += weight * score.recall;
  sum->f1 += weight * score.f1;
}

void Divide(double divisor, ClassScore* sum) {
  sum->precision = Quotient(sum->precision, divisor);
  sum->recall = Quotient(sum->recall, divisor);
  sum->f1 = Quotient(sum->f1, divisor);
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(int64_t classes, std::span<const int32_t> labels,
                                 std::span<const int32_t> predicted)
    : classes_(classes), counts_(classes * classes) {
  RT_CHECK(labels.size() == predicted.size(), "one prediction per label");
  for (size_t i = 0; i < labels.size(); ++i) {
    RT_CHECK(labels[i] >= 0 && labels[i] < classes && predicted[i] >= 0 && predicted[i] < classes,
             "classes are 0 .. classes - 1");
    ++counts_[labels[i] * classes + predicted[i]];
  }
}

int64_t ConfusionMatrix::images() const {
  return std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
}

int64_t ConfusionMatrix::correct() const {
  int64_t sum = 0;
  for (int64_t k = 0; k < classes_; ++k) sum += at(k, k);
  return sum;
}

int64_t ConfusionMatrix::support(int64_t label) const {
  int64_t sum = 0;
  for (int64_t k = 0; k < classes_; ++k) sum += at(label, k);
  return sum;
}

int64_t ConfusionMatrix::predictions(int64_t predicted) const {
  int64_t sum = 0;
  for (int64_t k = 0; k < classes_; ++k) sum += at(k, predicted);
  return sum;
}

ClassScores ScoreClasses(const ConfusionMatrix& matrix) {
  ClassScores scores;
  for (int64_t k = 0; k < matrix.classes(); ++k) {
    const auto right = static_cast<double>(matrix.at(k, k));
    ClassScore score;
    score.support = matrix.support(k);
    score.precision = Quotient(right, static_cast<double>(matrix.predictions(k)));
    score.recall = Quotient(right, static_cast<double>(score.support));
    score.f1 = Quotient(2 * score.precision * score.recall, score.precision + score.recall);
    AddWeighted(score, 1, &scores.macro);
    AddWeighted(score, static_cast<double>(score.support), &scores.weighted);
    scores.classes.push_back(score);
  }
  scores.macro.support = scores.weighted.support = matrix.images();
  Divide(static_cast<double>(matrix.classes()), &scores.macro);
  Divide(static_cast<double>(matrix.images()), &scores.weighted);
  return scores;
}

std::vector<Confusion> MostConfused(const ConfusionMatrix& matrix, size_t most) {
  std::vector<Confusion> pairs;
  for (int64_t label = 0; label < matrix.classes(); ++label) {
    for (int64_t predicted = 0; predicted < matrix.classes(); ++predicted) {
      const int64_t count = matrix.at(label, predicted);
      if (label != predicted && count > 0) pairs.push_back({label, predicted, count});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Confusion& a, const Confusion& b) { return a.count > b.count; });
  pairs.resize(std::min(pairs.size(), most));
  return pairs;
}

}  // namespace ringtail
