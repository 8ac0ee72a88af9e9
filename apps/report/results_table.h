// results.csv: a row per evaluation, for spreadsheets and plots, in the names that ultralytics uses.
//
//   epoch,step,time,train/loss,train/accuracy,val/loss,metrics/accuracy_top1,lr/pg0
//
// `time`: seconds since the first line of metrics.jsonl. `train/...` and `lr/pg0`: means since the
// evaluation before. What is unknown is empty. Thread-safety: a function without state.
#ifndef RINGTAIL_APPS_REPORT_RESULTS_TABLE_H_
#define RINGTAIL_APPS_REPORT_RESULTS_TABLE_H_

#include <string>

#include "apps/report/run_history.h"

namespace ringtail {

std::string ResultsCsv(const RunHistory& history);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_RESULTS_TABLE_H_
