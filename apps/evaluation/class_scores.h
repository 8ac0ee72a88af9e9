// How often each class is taken for each other, and precision, recall and F1 per class, as
// scikit-learn's confusion_matrix and classification_report define them: a quotient whose divisor
// is 0 (a class that was never predicted, or of which there is no image) counts as 0.
//
//   precision = right / predicted      recall = right / support
//   F1 = 2 precision recall / (precision + recall)      support = images of the class
//
// Source: van Rijsbergen 1979, Information Retrieval, chapter 7 (F measure); scikit-learn 1.2.
// Thread-safety: values and functions without state. Cost: one pass; classes squared of memory.
#ifndef RINGTAIL_APPS_EVALUATION_CLASS_SCORES_H_
#define RINGTAIL_APPS_EVALUATION_CLASS_SCORES_H_

#include <cstdint>
#include <span>
#include <vector>

namespace ringtail {

class ConfusionMatrix {
 public:
  // labels[i], predicted[i]: 0 .. classes - 1.
  ConfusionMatrix(int64_t classes, std::span<const int32_t> labels,
                  std::span<const int32_t> predicted);

  int64_t classes() const { return classes_; }
  int64_t at(int64_t label, int64_t predicted) const {
    return counts_[label * classes_ + predicted];
  }
  int64_t images() const;
  int64_t correct() const;
  int64_t support(int64_t label) const;          // the sum of a row
  int64_t predictions(int64_t predicted) const;  // the sum of a column

 private:
  int64_t classes_;
  std::vector<int64_t> counts_;  // rows: truth; columns: prediction
};

struct ClassScore {
  double precision = 0, recall = 0, f1 = 0;
  int64_t support = 0;
};

struct ClassScores {
  std::vector<ClassScore> classes;
  ClassScore macro;     // the mean over classes; support: all images
  ClassScore weighted;  // the mean weighted by support
};
ClassScores ScoreClasses(const ConfusionMatrix& matrix);

struct Confusion {
  int64_t label = 0, predicted = 0, count = 0;
  bool operator==(const Confusion&) const = default;
};
// At most `most` pairs of different classes with a count above 0: most frequent first, then in the
// order of classes.
std::vector<Confusion> MostConfused(const ConfusionMatrix& matrix, size_t most);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EVALUATION_CLASS_SCORES_H_
