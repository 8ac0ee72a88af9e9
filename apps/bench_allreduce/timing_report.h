// TimingReport: prints measured lines on standard output in one of three styles, and reads them
// back from the output of a process that uses style kLines. Thread-safety: none.
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_TIMING_REPORT_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_TIMING_REPORT_H_

#include <string>
#include <string_view>
#include <vector>

#include "apps/bench_allreduce/allreduce_timing.h"
#include "core/status.h"

namespace ringtail {

enum class ReportStyle {
  kTable,  // for people; each line as soon as it is measured
  kJson,   // TimingsJson; at the end
  kLines,  // for the launching process: one JSON object per line, at once
};

class TimingReport {
 public:
  explicit TimingReport(ReportStyle style) : style_(style) {}

  void AddNote(const std::string& note);
  void AddTiming(const AllreduceTiming& timing);
  // Adds the note or timing of a line that a TimingReport in style kLines has printed. DataLoss for
  // any other line.
  Status AddLine(std::string_view line);
  void Finish();

 private:
  const ReportStyle style_;
  std::vector<AllreduceTiming> timings_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_TIMING_REPORT_H_
