// How well a score separates the images of one class from all others, at every threshold: ROC and
// precision-recall curve, the area under the first, and average precision. Images of equal scores
// change sides together, so ties count half in the area.
//
//   ROC    false positive rate -> true positive rate, from (0, 0) to (1, 1); area by trapezoids
//   AP     sum over thresholds of (recall - recall of the threshold before) precision
//
// Several classes: one against the rest, and the mean over the classes for which the measure is
// defined ("macro"). Two classes: that of the second alone, as for a yes-or-no question.
// Sources: Fawcett 2006, "An introduction to ROC analysis", algorithms 1 and 2; scikit-learn 1.2,
// roc_auc_score and average_precision_score. Thread-safety: functions without state.
// Cost: n log n per class.
#ifndef RINGTAIL_APPS_EVALUATION_RANKING_H_
#define RINGTAIL_APPS_EVALUATION_RANKING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "apps/evaluation/scored_images.h"

namespace ringtail {

// The images whose score is at least `threshold` count as the class.
struct RankingPoint {
  double threshold = 0;
  int64_t true_positives = 0, false_positives = 0;
};

struct Ranking {
  int64_t positives = 0, negatives = 0;
  std::vector<RankingPoint> points;  // thresholds descending; the last counts every image

  // NaN without a positive or without a negative.
  double RocAuc() const;
  // NaN without a positive.
  double AveragePrecision() const;
};

// positive[i]: image i is of the class. Scores are finite.
Ranking Rank(std::span<const double> scores, const std::vector<bool>& positive);
Ranking RankClass(const ScoredImages& scored, int64_t one_class);

// NaN if undefined for every class that counts.
struct RankingMeans {
  double roc_auc = 0, average_precision = 0;
};
RankingMeans MeanRanking(const ScoredImages& scored);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EVALUATION_RANKING_H_
