// A schedule as text, one line per stage, one column per operation, if all operations took the same
// time and messages none:
//
//   stage 0  F0 F1 .  B0 F2 B1 F3 B2 .  B3
//   stage 1  .  F0 B0 F1 B1 F2 B2 F3 B3 .
//
// Thread-safety: a pure function.
#ifndef RINGTAIL_DIST_PIPELINE_DRAW_SCHEDULE_H_
#define RINGTAIL_DIST_PIPELINE_DRAW_SCHEDULE_H_

#include <string>

#include "dist/pipeline/schedule.h"

namespace ringtail {

// Lines of at most `width` characters, each ended by a newline; where they would be longer, "..."
// stands for the middle of the step. At least the first and the last column are drawn.
std::string DrawSchedule(const PipelineShape& shape, int width = 100);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PIPELINE_DRAW_SCHEDULE_H_
