// Facts for tests of the planner: random ones, and a small one worked by hand.
#ifndef RINGTAIL_TESTS_DIST_PLANNER_PLANNER_FACTS_H_
#define RINGTAIL_TESTS_DIST_PLANNER_PLANNER_FACTS_H_

#include <cstdint>

#include "core/random.h"
#include "dist/planner/network_facts.h"
#include "dist/planner/planner.pb.h"
#include "dist/planner/prediction.h"

namespace ringtail {

// 2 to 9 parameters of up to 80,000 elements, batches of 4 and 16 images, one core, a scheme
// "linear8"; one rank on each of 8 hosts. The timetable rises with the batch. In half of them some
// of the update can be prepared.
PlannerFacts RandomFacts(Rng* rng);
// One core computes 2 s forward and 4 backward of a batch of 1.
PlannerFacts FactsOfOneParameter(double update_s);

// A random network of `hosts` hosts with `cores` each, as fast as Ethernet is.
NetworkFacts RandomNetwork(int hosts, double cores, Rng* rng);

// An upper bound of the seconds of a round: if nothing of `prediction`, which is of these facts, overlaps.
double WithoutOverlap(const Prediction& prediction, const PlannerFacts& facts);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_PLANNER_PLANNER_FACTS_H_
