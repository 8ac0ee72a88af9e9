// The parts of a report about how well the network does, as HTML.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_REPORT_EVALUATION_SECTION_H_
#define RINGTAIL_APPS_REPORT_EVALUATION_SECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/report/run_report.h"

namespace ringtail {

// A paragraph: accuracy with its interval, loss.
std::string EvaluationHeadline(const ReportEvaluation& evaluation);
// Table per class, confusion matrix, ROC, precision and recall, calibration.
std::string EvaluationSection(const ReportEvaluation& evaluation);

// Bytes that images may still take.
class ImageBudget {
 public:
  explicit ImageBudget(int64_t bytes) : left_(bytes) {}
  bool Take(int64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  int64_t left_;
};

// Empty without images. Says how many did not fit. With a `feature_map` (ReportEvaluation), says what
// the overlays show.
std::string Gallery(const std::string& title, const std::string& explanation,
                    const std::vector<ReportImage>& images, const std::string& feature_map,
                    ImageBudget* budget);

// `html` in a box that scrolls sideways by itself, also by keyboard; `name` for screen readers.
std::string Scrollable(const std::string& name, const std::string& html);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_EVALUATION_SECTION_H_
