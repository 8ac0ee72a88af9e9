// Choice: how a job of several hosts could train. The planner predicts one (step_simulator.h) and
// looks for the best (search.h).
// Thread-safety: a value.
#ifndef RINGTAIL_DIST_PLANNER_CHOICE_H_
#define RINGTAIL_DIST_PLANNER_CHOICE_H_

#include <cstdint>
#include <string>

#include "dist/gradients/gradient_buckets.h"

namespace ringtail {

inline constexpr char kDenseScheme[] = "dense";

struct Choice {
  int hosts = 1;                   // that train; each with all its ranks
  int64_t global_batch = 1;        // images of all ranks in a step; at least one for each
  std::string algorithm = "auto";  // of allreduces, as dist.algorithm
  BucketOptions buckets;
  std::string scheme = kDenseScheme;  // kDenseScheme, or the name of a scheme of the facts
  // 1: gradients are added up in every step. H > 1: every rank takes H steps of its own, then the
  // differences of weights are exchanged (local SGD: Stich 2019; DiLoCo: Douillard et al. 2023).
  int period = 1;
  bool overlap = false;  // the exchange of a round runs behind the steps of the next
  // Differences are exchanged even with a period of 1: no gradient travels while backward runs.
  bool rounds = false;
  // Large linear layers are divided among the ranks (divided_layers.h); then dense, every step.
  bool divided = false;
  // Images are divided in proportion to the ranks' speeds, not evenly (shares_by_speed.h); not of
  // ranks that divide layers.
  bool by_speed = false;
  int64_t parts = 0;  // of a rank's step, as train.accumulation has them; 0: those that are fastest

  bool has_rounds() const { return rounds || period > 1 || overlap; }

  bool operator==(const Choice& other) const {
    return hosts == other.hosts && global_batch == other.global_batch &&
           algorithm == other.algorithm && buckets.bytes == other.buckets.bytes &&
           buckets.end_bytes == other.buckets.end_bytes && scheme == other.scheme &&
           period == other.period && overlap == other.overlap && rounds == other.rounds &&
           divided == other.divided && by_speed == other.by_speed && parts == other.parts;
  }
};

// "8 hosts, linear8, 8 local steps, overlapped"; "8 hosts, dense, every step"; "8 hosts, dense, 1
// local step"; "4 hosts, linear layers divided, every step"; "4 hosts, dense, every step, images
// divided by speed"; of the ranks of one host "one host, top_k 1%, every step", and "one host" where
// they add up gradients as they are, in every step.
std::string Describe(const Choice& choice);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_CHOICE_H_
