// Writes the report of a run: its history, how well its network does, images, config. Beside it, in
// the run's folder, its curves as results.csv and as TensorBoard's event files.
// Thread-safety: the trainer thread only. Cost: an evaluation of the validation images, unless the
// run's folder has that of this network already; then about a second.
#ifndef RINGTAIL_APPS_REPORT_WRITE_REPORT_H_
#define RINGTAIL_APPS_REPORT_WRITE_REPORT_H_

#include <string>

#include "apps/trainer/checkpoint/model_file.h"
#include "core/status.h"

namespace ringtail {

inline constexpr char kReportName[] = "report.html";
inline constexpr char kResultsName[] = "results.csv";

struct ReportRequest {
  std::string run_folder;
  std::string network;  // the file that `trained` was read from
  std::string out;      // the file to write
  bool images = true;   // copies of images in the report
  // The data or settings are not those of the run: the network is evaluated again, and the folder
  // keeps its evaluation.
  bool changed = false;
};
// Errors: those of EvaluateNetwork and of writing; a data set that cannot be opened, unless
// `images` is false and the evaluation is known.
Status WriteReport(const ReportRequest& request, const TrainedModel& trained);

// The same at the end of a run, from its folder and its final network alone.
Status WriteReportOfRun(const std::string& run_folder);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_WRITE_REPORT_H_
