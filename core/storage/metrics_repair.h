// metrics.jsonl before a run goes on: what the run will write again goes, and so does what a machine
// that lost power has torn.
//
// Lines are looked at one after the other, in blocks: memory does not grow with the file, and most
// of the time only its end is cut off. Thread-safety: one caller per file, and nobody writing.
// Errors: Status with the path. Cost: reads the file once. 500 MB that are cached, 770,000 lines:
// 0.11 to 0.13 s, and 0.45 s where they had yet to reach the disk (an AMD EPYC).
#ifndef RINGTAIL_CORE_STORAGE_METRICS_REPAIR_H_
#define RINGTAIL_CORE_STORAGE_METRICS_REPAIR_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace ringtail {

// Leaves in `path` the lines of steps up to `last_step`; a missing file becomes an empty one.
Status RepairMetrics(const std::string& path, int64_t last_step);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_METRICS_REPAIR_H_
