// What the literature says an allreduce costs, as formulas: the oracle for plans and their prices
// (Hockney 1994; Thakur, Rabenseifner & Gropp 2005). The world is flat: all links are alike, and
// every rank has one of its own.
//
//   time = latencies * alpha + wire_bytes * beta + reduced_bytes * gamma
//
// Rounds and bytes are exact if the array divides evenly (into N parts, or P, see power_of_two.h),
// and otherwise off by less than an element per message. The time is exact, too, for the single
// reducer and the ring, and in worlds of 2^k for recursive doubling, halving-doubling and the
// binomial tree. In other worlds, and for the double binary tree (all of whose numbers are bounds),
// the time is an upper bound: latencies overlap, as some ranks are idle.
#ifndef RINGTAIL_TESTS_DIST_COLLECTIVES_COST_FORMULAS_H_
#define RINGTAIL_TESTS_DIST_COLLECTIVES_COST_FORMULAS_H_

#include <cstdint>
#include <string_view>

#include "dist/collectives/link_model.h"
#include "dist/collectives/topology.h"

namespace ringtail {

struct FormulaCost {
  int64_t rounds = 0;         // of the rank with the most
  double sent_bytes = 0;      // by the rank that sends the most
  double received_bytes = 0;  // by the rank that receives the most
  // On the path of messages that wait for each other:
  int64_t latencies = 0;
  double wire_bytes = 0, reduced_bytes = 0;

  double Seconds(const LinkModel& links) const;
};

// In which worlds the time is exact; elsewhere it is an upper bound.
enum class TimeIsExact { kInEveryWorld, kInPowersOfTwo, kNowhere };

struct AllreduceFormula {
  std::string_view algorithm;
  // Whether rounds and bytes are those of the plans, or only bounds; TimeIsExact::kNowhere then.
  bool exact_counts = true;
  TimeIsExact time_is_exact = TimeIsExact::kInPowersOfTwo;
  FormulaCost (*of)(const Topology& topology, double bytes) = nullptr;

  // `topology` matters only to the hierarchical algorithm.
  FormulaCost Cost(const Topology& topology, int64_t bytes) const;
};

// Ends the process if there is none for the algorithm of this name.
const AllreduceFormula& FormulaOf(std::string_view algorithm);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_COLLECTIVES_COST_FORMULAS_H_
