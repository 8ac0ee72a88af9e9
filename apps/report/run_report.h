// What a report shows, as values; RenderReport makes a page of them.
//
// The page is one file of HTML: no scripts, nothing from the network (its Content-Security-Policy
// forbids both), light and dark by the reader's preference, charts as inline SVG with their numbers
// in tables beside them, images as data URIs with texts. Names of files and classes are escaped.
// Thread-safety: values and functions without state.
// Size: at most kMostReportBytes, unless classes have names of kilobytes: images are left out that
// do not fit, tables have at most kMostClassRows and matrices kMostMatrixClasses classes (those
// with the lowest F1).
#ifndef RINGTAIL_APPS_REPORT_RUN_REPORT_H_
#define RINGTAIL_APPS_REPORT_RUN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/evaluation/evaluation_summary.h"
#include "apps/report/run_history.h"

namespace ringtail {

inline constexpr int64_t kMostReportBytes = 2'000'000;
inline constexpr size_t kMostClassRows = 300, kMostMatrixClasses = 30;

struct ReportImage {
  std::string file, label;
  std::string taken_for;     // a mistake: another label; else empty
  double confidence = -1;    // in what it was taken for; negative: not asked
  std::string jpeg;          // the file; empty: could not be read
  std::string overlay_jpeg;  // the same under its Grad-CAM; empty: none
  std::string overlay_text;  // for readers who do not see it
};

struct ReportEvaluation {
  std::string network, part;  // "final.safetensors", "validation"
  ScoredImages scored;
  int64_t bad_images = 0;
  std::vector<ReportImage> worst, best;  // largest loss first; smallest loss first
  std::string feature_map;  // the layer whose output Grad-CAM looks at; empty: no Grad-CAM
};

struct RunReport {
  std::string name;  // of the run's folder
  RunHistory history;
  std::optional<ReportEvaluation> evaluation;  // none: nothing to validate
  std::vector<ReportImage> training_images;
  std::vector<std::pair<std::string, std::string>> data;  // "images", "Kaggle layout, ..."
  std::string config;                                     // text
  std::string versions;
};

std::string RenderReport(const RunReport& report);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_RUN_REPORT_H_
