// The curves of a run as TensorBoard's event files: tags `loss`, `accuracy` and `learning_rate` in
// tensorboard/train, `loss` and `accuracy` in tensorboard/validation, so that both parts share a
// chart. Each folder has one file; event_log.h appends to it while a run trains.
//
//   record   length (u64) | masked CRC-32C of it (u32) | event | masked CRC-32C of the event (u32)
//   file     version | start | a point | a point | ...
//
// A run that is resumed begins a file with its whole history so far, which has every step once, and
// the file before is removed. A TensorBoard that has read that one takes the new file next, as its
// name is later in order, and forgets what it has read, as it begins with `start` at step 0.
//
// Source: tensorflow/core/lib/io/record_writer.h; for `start`, event_accumulator.py of TensorBoard.
// Thread-safety: functions without state; one writer per folder.
#ifndef RINGTAIL_APPS_REPORT_TENSORBOARD_EVENTS_H_
#define RINGTAIL_APPS_REPORT_TENSORBOARD_EVENTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "apps/report/run_history.h"
#include "core/status.h"

namespace ringtail {

inline constexpr char kTensorboardFolder[] = "tensorboard";  // in the folder of a run

// What a file begins with; `time`: UNIX seconds.
std::string EventFileHead(double time);
// What is not finite is left out; a point with nothing finite is no record.
std::string PointRecord(const HistoryPoint& point);
// A file of one event per point. A point without a time gets that of the one before.
std::string EventFile(const std::vector<HistoryPoint>& points);
// One record around `event`, little-endian.
std::string EventRecord(std::string_view event);

// The event files in `folder`, sorted; none if it is not there.
std::vector<std::string> EventFileNames(const std::string& folder);
// A name behind all of them: "events.out.tfevents.1764031526.ringtail".
std::string NextEventFileName(const std::string& folder);
// Removes all but `kept`.
Status RemoveEventFiles(const std::string& folder, const std::string& kept);

// Brings both parts below `folder` up to date; a part without points has no file. A file that begins
// with these points stays as it is: a run may be training, and then it is ahead of metrics.jsonl.
Status WriteEventFiles(const std::string& folder, const RunHistory& history);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_TENSORBOARD_EVENTS_H_
