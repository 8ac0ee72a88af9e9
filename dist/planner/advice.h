// Advice: what a run should be told before its first step, and the lines of a config that a choice
// needs.
//
//   8 hosts, dense, every step: predicted 35 images/s, 0.15 times one host alone (239), because it
//   waits for the wire for 6502.1 of 7310.6 ms per step; 8 hosts, linear8, 8 local steps, overlapped,
//   would make 1118: set dist.local { period: 8 overlap: true compression { ... } }
//
// Thread-safety: functions without state (of their own).
#ifndef RINGTAIL_DIST_PLANNER_ADVICE_H_
#define RINGTAIL_DIST_PLANNER_ADVICE_H_

#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/planner/choice.h"
#include "dist/planner/planner.pb.h"
#include "dist/planner/search.h"
#include "dist/planner/step_simulator.h"

namespace ringtail {

// Faster by so much is worth a sentence.
inline constexpr double kWorthSaying = 1.3;

// One sentence if `current` is slower than one host alone, or if the best of `space` is at least
// kWorthSaying times as fast; else nothing.
StatusOr<std::optional<std::string>> AdviceFor(const PlannerFacts& facts,
                                               const NetworkFacts& network, const Choice& current,
                                               const SearchSpace& space);

// "N hosts are predicted to be slower than one" in a sentence, with the numbers; nothing if not so.
std::optional<std::string> SlowerThanOne(const Prediction& prediction, const Prediction& one_host);

// Fields of a config, one per line: `train.batch: 32`, `dist.local { period: 8 ... }`. `ranks`: of
// all hosts of the choice. Only what differs from the defaults.
std::vector<std::string> ConfigLines(const Choice& choice, const PlannerFacts& facts,
                                     int64_t ranks);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_ADVICE_H_
