// Predictions for images as text.
//
//   table       image, the likeliest class, its probability, one line each
//   CSV         key,label,probability with a header line
//   JSON        a list of objects: file, label, probability, and the probabilities of all classes;
//               of an image that cannot be decoded file and null
//   submission  Kaggle's id,label: the number in the file's name, the probability of the second
//               class ("dog"); sorted by number
// Images that cannot be decoded are "-" in the table, omitted from the CSV, and 0.5 in a
// submission, which must contain every image. Thread-safety: functions without state. Errors:
// InvalidArgument if file names for a submission have no numbers or equal ones, or if there are not
// two classes.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_PREDICTION_TABLE_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_PREDICTION_TABLE_H_

#include <string>
#include <vector>

#include "apps/trainer/evaluation.h"
#include "core/status.h"
#include "data/dataset.h"

namespace ringtail {

// Row i of `logits` is sample i of `dataset`.
std::string PredictionTable(const Dataset& dataset, const ImageLogits& logits,
                            const std::vector<std::string>& class_names);
std::string PredictionCsv(const Dataset& dataset, const ImageLogits& logits,
                          const std::vector<std::string>& class_names);
std::string PredictionJson(const Dataset& dataset, const ImageLogits& logits,
                           const std::vector<std::string>& class_names);
StatusOr<std::string> SubmissionCsv(const Dataset& dataset, const ImageLogits& logits);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_PREDICTION_TABLE_H_
