// Runs the schedules of all stages against each other, as ranks would: every receive blocks until
// its message is there, every send until there is a slot.
#ifndef RINGTAIL_TESTS_DIST_PIPELINE_PIPELINE_SIMULATOR_H_
#define RINGTAIL_TESTS_DIST_PIPELINE_PIPELINE_SIMULATOR_H_

#include <string>
#include <vector>

#include "core/random.h"
#include "dist/pipeline/schedule.h"

namespace ringtail {

struct PipelineRun {
  std::string deadlock;   // who waits for what; empty: all ended
  int messages_left = 0;  // sent, but not received
  int most_in_lane = 0;   // messages of one direction of a boundary that held a slot at once
};

// operations[s] are those of stage s. Of the stages that can continue, `rng` draws the next.
// `slots`: how many messages of one direction of a boundary may be sent before the first of them is
// received; 0: a send waits until its receiver asks for it.
PipelineRun RunStages(const std::vector<std::vector<StageOperation>>& operations, int slots,
                      Rng* rng);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_PIPELINE_PIPELINE_SIMULATOR_H_
