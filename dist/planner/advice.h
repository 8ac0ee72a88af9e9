// Advice: what a run should be told before its first step.
//
//   8 hosts, dense, every step: predicted 35 images/s, 0.15 times one host alone (239), because it
//   waits for the wire for 6502.1 of 7310.6 ms per step
//
// Thread-safety: a function without state.
#ifndef RINGTAIL_DIST_PLANNER_ADVICE_H_
#define RINGTAIL_DIST_PLANNER_ADVICE_H_

#include <optional>
#include <string>

#include "dist/planner/prediction.h"

namespace ringtail {

// "N hosts are predicted to be slower than one" in a sentence, with the numbers; nothing if not so.
std::optional<std::string> SlowerThanOne(const Prediction& prediction, const Prediction& one_host);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_ADVICE_H_
