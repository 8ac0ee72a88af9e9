// The ways to train together that have been shown to reach one host's accuracy: what dist.plan: AUTO
// chooses from, and what a run is told of.
//
//   any network                dense; linear8, whose error is a hundredth of the gradient
//   the default one, by Muon   and hylo, and a hundredth of the gradient and a fiftieth of sums (top_k), in every step
//
// Shown means: within 0.3 points of dense, or not told from it by single runs, with the global batch
// of one host (a hundredth and a fiftieth, in 4 bits: 0.24 over three seeds). apps/plan/README.md and
// apps/studies/local_rounds.md ("By H") have the evidence, also single runs that lose 0.3 to 0.7.
// What is faster but loses more is left to the user: local rounds, larger batches, a thousandth of
// the gradient, by which the default network loses 0.9 points, resnet18 5, and a hundredth with SGD, which
// loses 2.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_PLANNER_SHOWN_CHOICES_H_
#define RINGTAIL_DIST_PLANNER_SHOWN_CHOICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dist/planner/planner.pb.h"
#include "dist/planner/search.h"

namespace ringtail {

// What accuracy was shown for.
struct TrainedNet {
  bool is_default = false;  // the layers of configs/dogs_vs_cats.textproto
  bool by_muon = false;     // optim.muon
};

// The schemes beside dense, by the names of facts (planner.proto).
std::vector<std::string> ShownSchemes(TrainedNet net);

// Images of a rank in a step, of several hosts. With batch norm of each rank's own images 8: the default
// network's accuracy is the same with 8, 16 and 32 (apps/studies/local_rounds.md, "By H").
int64_t FewestShownImages(const PlannerFacts& facts);

// `batch`: of one host.
SearchSpace ShownSpace(TrainedNet net, int64_t batch);
// Those of `space` that are among them; without schemes if none is.
SearchSpace ShownPart(SearchSpace space, TrainedNet net);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_SHOWN_CHOICES_H_
