// What collectives cost in worlds too large for their plans: formulas, equal to what plan_cost.h
// computes from the plans where a test can compare them, and never below it.
//
//   seconds = latencies * alpha + wire_bytes * beta + reduced_bytes * gamma
//
//   ring                  exact in every world; with several ranks per host at most 15 % too high
//   recursive doubling, halving-doubling, binomial tree      exact in worlds of 2^k, one rank per host
//   others, other worlds  upper bounds
//
// A ring of 1,024 ranks has four million steps, each of which plan_cost.h takes some 200 ns for.
// Sources: Hockney 1994; Thakur, Rabenseifner & Gropp 2005; the algorithms' own headers.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_PLANNER_CLOSED_FORMS_H_
#define RINGTAIL_DIST_PLANNER_CLOSED_FORMS_H_

#include <cstdint>

#include "dist/collectives/algorithms.h"
#include "dist/collectives/link_model.h"
#include "dist/collectives/topology.h"

namespace ringtail {

struct CollectivePrice {
  double seconds = 0;
  int64_t sent_bytes = 0, sent_messages = 0;  // of the ranks with the most
  double busy_seconds = 0;  // while ranks compute, which may be longer; set by CollectivePrices
};

// Processor seconds of a rank for what it sends (NetworkModel): receiving as much included.
struct SendingCost {
  double per_byte = 0, per_message = 0;

  double Of(const CollectivePrice& price) const {
    return static_cast<double>(price.sent_bytes) * per_byte +
           static_cast<double>(price.sent_messages) * per_message;
  }
};

// Ranks in blocks of `ranks_per_host` on `hosts` hosts (Topology::Blocks).
struct RegularWorld {
  int hosts = 1, ranks_per_host = 1;

  int64_t ranks() const { return int64_t{hosts} * ranks_per_host; }
  Topology topology() const { return Topology::Blocks(static_cast<int>(ranks()), ranks_per_host); }
};

CollectivePrice AllreduceByFormula(const AllreduceAlgorithm& algorithm, const RegularWorld& world,
                                   int64_t elements, const NetworkModel& network);
// The cheaper one of ring and Bruck, for an array of `elements`.
CollectivePrice AllgatherByFormula(const RegularWorld& world, int64_t elements,
                                   const NetworkModel& network);
// For an array of 2 ranks * block elements.
CollectivePrice AllToAllByFormula(const RegularWorld& world, int64_t block,
                                  const NetworkModel& network);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_CLOSED_FORMS_H_
