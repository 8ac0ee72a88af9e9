// The sizes of images that a run trains, one after the other (train.phase), as the planner sees them:
//
//   64 pixels | 96 ........................ | 128 .......... |      share of all steps: 0.06, 0.61, 0.32
//
// A step takes two to four times as long with larger images and sends as much, so the network that holds
// hosts up with small images need not with large ones. What a choice is worth is its mean step of the run.
// Thread-safety: values; functions without state.
#ifndef RINGTAIL_DIST_PLANNER_IMAGE_SIZES_H_
#define RINGTAIL_DIST_PLANNER_IMAGE_SIZES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "dist/planner/planner.pb.h"
#include "dist/planner/step_timetable.h"

namespace ringtail {

struct TimetableOfSize {
  double share = 1;
  StepTimetable timetable;
};

// Facts as of a run that trains one size alone.
struct FactsOfSize {
  double share = 1;  // of all steps; of all sizes together 1
  PlannerFacts facts;
};

// In the order of the facts, which have been checked (facts_file.h); not empty.
std::vector<FactsOfSize> SizesOf(const PlannerFacts& facts);
// None if the facts do not have the size.
std::optional<PlannerFacts> OfImageSize(const PlannerFacts& facts, int64_t image_size);
// For ranks that compute with `cores`.
std::vector<TimetableOfSize> TimetablesOf(const PlannerFacts& facts, double cores);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_IMAGE_SIZES_H_
