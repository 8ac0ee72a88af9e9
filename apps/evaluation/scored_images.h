// What a network says of labelled images, beside what is true: the input of every measure in this
// folder, and one row an image of a CSV file.
//
//   file,label,predicted,loss,probability_cat,probability_dog
//   cat.7.jpg,cat,dog,1.0217,0.36,0.64
//
// Numbers are written with as many digits as it takes to read back the same bits, so that other
// programs see the same ties. Thread-safety: values and functions without state.
#ifndef RINGTAIL_APPS_EVALUATION_SCORED_IMAGES_H_
#define RINGTAIL_APPS_EVALUATION_SCORED_IMAGES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trainer/evaluation.h"
#include "core/status.h"
#include "data/dataset.h"

namespace ringtail {

struct ScoredImages {
  std::vector<std::string> class_names;
  std::vector<std::string> files;     // as the data set calls them
  std::vector<int32_t> labels;        // 0 .. classes - 1
  std::vector<int32_t> predicted;     // the first of the likeliest classes
  std::vector<double> losses;         // -log p[label], natural logarithm
  std::vector<double> probabilities;  // (images, classes), row-major; each row sums up to 1

  int64_t images() const { return std::ssize(labels); }
  int64_t classes() const { return std::ssize(class_names); }
  std::span<const double> row(int64_t i) const {
    return {probabilities.data() + i * classes(), static_cast<size_t>(classes())};
  }
  double confidence(int64_t i) const { return row(i)[predicted[i]]; }  // of the predicted class
};

// Row i of `logits` is sample indices[i] of `dataset`. Images that could not be read or have no
// label are left out. Logits without a class in `dataset` are of "class 5" and so on.
ScoredImages MakeScoredImages(const ImageLogits& logits, const Dataset& dataset,
                              const std::vector<int64_t>& indices);

std::string ScoredImagesCsv(const ScoredImages& scored);
// Reads what ScoredImagesCsv has written. InvalidArgument, with the line, if it is anything else.
StatusOr<ScoredImages> ParseScoredImages(std::string_view csv);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EVALUATION_SCORED_IMAGES_H_
