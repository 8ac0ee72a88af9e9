// Advice: what a run should be told before its first step, and the lines of a config that a choice
// needs.
//
//   8 hosts, dense, every step: predicted 35 images/s, 0.15 times one host alone (239), because it
//   waits for the wire for 6502.1 of 7310.6 ms per step
//
// Thread-safety: functions without state (of their own).
#ifndef RINGTAIL_DIST_PLANNER_ADVICE_H_
#define RINGTAIL_DIST_PLANNER_ADVICE_H_

#include <optional>
#include <string>
#include <vector>

#include "dist/planner/choice.h"
#include "dist/planner/planner.pb.h"
#include "dist/planner/prediction.h"

namespace ringtail {

// "N hosts are predicted to be slower than one" in a sentence, with the numbers; nothing if not so.
std::optional<std::string> SlowerThanOne(const Prediction& prediction, const Prediction& one_host);

// Fields of a config, one per line: `train.batch: 32`, `dist.local { period: 8 ... }`. `ranks`: of
// all hosts of the choice. Only what differs from the defaults.
std::vector<std::string> ConfigLines(const Choice& choice, const PlannerFacts& facts,
                                     int64_t ranks);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_ADVICE_H_
