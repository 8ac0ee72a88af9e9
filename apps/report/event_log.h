// EventLog: TensorBoard's event files while a run trains: each point is in the file, and with the
// operating system, when Add returns. At any time a file is what WriteEventFiles would write of the
// history (tensorboard_events.h).
// Thread-safety: none. Errors: Status with the path; after one the log must not be used any more.
// Cost: one write of about 100 bytes per point.
#ifndef RINGTAIL_APPS_REPORT_EVENT_LOG_H_
#define RINGTAIL_APPS_REPORT_EVENT_LOG_H_

#include <optional>
#include <string>

#include "apps/report/run_history.h"
#include "core/status.h"
#include "core/storage/file_descriptor.h"

namespace ringtail {

class EventLog {
 public:
  // Below `folder`; in place of files that are there come new ones, with `history`.
  static StatusOr<EventLog> Open(const std::string& folder, const RunHistory& history);

  // `time` of the point must be set.
  Status AddTraining(const HistoryPoint& point) { return train_.Add(point); }
  Status AddEvaluation(const HistoryPoint& point) { return validation_.Add(point); }

 private:
  struct Part {
    Status Begin(const std::string& below, const std::vector<HistoryPoint>& points);
    Status Add(const HistoryPoint& point);
    std::string folder;
    std::optional<FileDescriptor> file;  // none: no point yet
  };
  Part train_, validation_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_EVENT_LOG_H_
