#include "apps/evaluation/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

class DefinedMean {
 public:
  void Add(double value) {
    if (std::isnan(value)) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? kUndefined : sum_ / count_; }

 private:
  double sum_ = 0;
  int count_ = 0;
};

}  // namespace

Ranking Rank(std::span<const double> scores, const std::vector<bool>& positive) {
  RT_CHECK(scores.size() == positive.size(), "one score per image");
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  Ranking ranking;
  for (size_t i = 0; i < order.size(); ++i) {
    (positive[order[i]] ? ranking.positives : ranking.negatives) += 1;
    const bool tied = i + 1 < order.size() && scores[order[i + 1]] == scores[order[i]];
    if (!tied) {
      ranking.points.push_back({scores[order[i]], ranking.positives, ranking.negatives});
    }
  }
  return ranking;
}

Ranking RankClass(const ScoredImages& scored, int64_t one_class) {
  std::vector<double> scores(scored.images());
  std::vector<bool> positive(scored.images());
  for (int64_t i = 0; i < scored.images(); ++i) {
    scores[i] = scored.row(i)[one_class];
    positive[i] = scored.labels[i] == one_class;
  }
  return Rank(scores, positive);
}

double Ranking::RocAuc() const {
  if (positives == 0 || negatives == 0) return kUndefined;
  double twice_area = 0;  // in counts, and therefore exact
  RankingPoint before;
  for (const RankingPoint& point : points) {
    twice_area += static_cast<double>(point.false_positives - before.false_positives) *
                  static_cast<double>(point.true_positives + before.true_positives);
    before = point;
  }
  return twice_area / (2 * static_cast<double>(positives) * static_cast<double>(negatives));
}

double Ranking::AveragePrecision() const {
  if (positives == 0) return kUndefined;
  double sum = 0;
  int64_t before = 0;
  for (const RankingPoint& point : points) {
    const auto taken = static_cast<double>(point.true_positives + point.false_positives);
    sum += static_cast<double>(point.true_positives - before) *
           static_cast<double>(point.true_positives) / taken;
    before = point.true_positives;
  }
  return sum / static_cast<double>(positives);
}

RankingMeans MeanRanking(const ScoredImages& scored) {
  DefinedMean auc, precision;
  for (int64_t k = scored.classes() == 2 ? 1 : 0; k < scored.classes(); ++k) {
    const Ranking ranking = RankClass(scored, k);
    auc.Add(ranking.RocAuc());
    precision.Add(ranking.AveragePrecision());
  }
  return {.roc_auc = auc.value(), .average_precision = precision.value()};
}

}  // namespace ringtail
