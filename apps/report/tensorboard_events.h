// The curves of a run as TensorBoard's event files: tags `loss`, `accuracy` and `learning_rate` in
// tensorboard/train, `loss` and `accuracy` in tensorboard/validation, so that both parts share a
// chart. Each file is written whole from the run's history, which has every step once, however often
// the run was resumed: no point is doubled.
//
//   record   length (u64) | masked CRC-32C of it (u32) | event | masked CRC-32C of the event (u32)
//
// Source: tensorflow/core/lib/io/record_writer.h. Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_REPORT_TENSORBOARD_EVENTS_H_
#define RINGTAIL_APPS_REPORT_TENSORBOARD_EVENTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "apps/report/run_history.h"
#include "core/status.h"

namespace ringtail {

inline constexpr char kEventFileName[] = "events.out.tfevents.0000000000.ringtail";

// A file of one event per point; what is not finite is left out.
std::string EventFile(const std::vector<HistoryPoint>& points);
// One record around `event`, little-endian.
std::string EventRecord(std::string_view event);

// Replaces both files below `folder`; a part without points has none.
Status WriteEventFiles(const std::string& folder, const RunHistory& history);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_TENSORBOARD_EVENTS_H_
