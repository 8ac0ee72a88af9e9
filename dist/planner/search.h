// Search: the choices of a space that train the most images per second.
//
//   every choice --LeastSeconds--> too slow to be listed or recommended? --no--> Simulate --> best ten
//
// One host alone is a candidate of every search, so the best is never slower than that. Speed is all
// that is compared: what is to be recommended for training must come from a space of choices whose
// accuracy is known to be good enough (shown_choices.h).
// Cost: that of the simulator, whose prices dominate; README.md has a measured time.
// Thread-safety: one thread.
#ifndef RINGTAIL_DIST_PLANNER_SEARCH_H_
#define RINGTAIL_DIST_PLANNER_SEARCH_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/planner/choice.h"
#include "dist/planner/prediction.h"
#include "dist/planner/step_simulator.h"

namespace ringtail {

// All combinations, except those that make no difference; one host of one rank has one choice, the
// first of the batches.
struct SearchSpace {
  std::vector<int> hosts;
  std::vector<int64_t> global_batches;
  std::vector<std::string> schemes = {kDenseScheme};
  std::vector<BucketOptions> buckets = {BucketOptions()};
  std::vector<std::string> algorithms = {"auto"};
  std::vector<int> periods = {1};  // with H > 1 also overlapped, unless `overlap` is false
  bool overlap = true;
  bool divided = false;  // also with linear layers divided, dense and in every step
  // Images of several hosts are divided by speed (SimulatorOptions::shares); then no layers are.
  bool by_speed = false;
  int64_t fewest_images = 1;  // of a rank in a step, of several hosts
  size_t keep = 10;           // >= 1
};

// Of all schemes of the facts; `batch` images of all ranks in every step, as one machine has them;
// up to `most_period` local steps (powers of two), unless ranks share the statistics of batch norm; 1 .. 32 hosts each, beyond that powers of two and
// all of them; linear layers divided, if the optimizer allows it.
SearchSpace DefaultSpace(const PlannerFacts& facts, const NetworkFacts& network, int64_t batch,
                         int most_period);

struct SearchResult {
  // Fastest first, at most SearchSpace::keep, not empty; of choices that differ only in buckets and
  // algorithm the fastest.
  std::vector<Prediction> best;
  Prediction recommended;  // Gentlest of all choices
  Prediction one_host;     // alone, with the first of the batches
  int64_t simulated = 0, pruned = 0;
};

// InvalidArgument if a choice of the space is one that the simulator refuses, other than for a batch
// that is too small for its ranks: those are left out.
StatusOr<SearchResult> Search(StepSimulator* simulator, const SearchSpace& space);

// Of the predictions within 2 % of the fastest the one that changes training least: fewest local
// steps, then not overlapped, dense, the smallest batch, fewest hosts; then the fastest.
// `predictions` is not empty.
const Prediction& Gentlest(std::span<const Prediction> predictions);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_SEARCH_H_
