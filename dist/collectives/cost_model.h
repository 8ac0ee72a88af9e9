// What an allreduce costs, by formula. (Hockney 1994; Thakur, Rabenseifner & Gropp 2005.)
//
// A message of n bytes takes alpha + n beta, and adding it takes n gamma. Links carry messages in
// both directions at once, every rank has one of its own, and all are alike. (plan_cost.h prices
// plans on two kinds of links; here, the world is flat.)
//
//   time = latencies * alpha + wire_bytes * beta + reduced_bytes * gamma
//
// Rounds and bytes are exact if the array can be cut evenly (into N parts, or P, see
// power_of_two.h), and else off by less than an element per message. Exact, too, is the time of the
// single reducer and the ring, and in worlds of 2^k of recursive doubling, halving-doubling and the
// binomial tree. In other worlds, and for the double binary tree (all of whose numbers are bounds),
// time is a bound from above: latencies overlap, as some ranks have nothing else to do.
#ifndef RINGTAIL_DIST_COLLECTIVES_COST_MODEL_H_
#define RINGTAIL_DIST_COLLECTIVES_COST_MODEL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "dist/collectives/algorithms.h"

namespace ringtail {

inline constexpr int64_t kElementBytes = sizeof(float);  // gradients travel as float32

struct CostModel {
  double latency_s = 0;                // alpha
  double seconds_per_byte = 0;         // beta: 1 / bandwidth
  double reduce_seconds_per_byte = 0;  // gamma
};

struct AllreduceCost {
  int64_t rounds = 0;         // of the rank with the most
  double sent_bytes = 0;      // by the rank that sends the most
  double received_bytes = 0;  // by the rank that receives the most
  // On the way of messages that wait for each other:
  int64_t latencies = 0;
  double wire_bytes = 0, reduced_bytes = 0;

  double Seconds(const CostModel& model) const;
  // How long the busiest link is busy in its busier direction. No schedule of the same messages is
  // faster; it is what is often quoted as "the" time (Baidu 2017).
  double BusiestLinkSeconds(const CostModel& model) const;
};

// `topology` matters only to the hierarchical algorithm.
AllreduceCost FormulaCost(AllreduceKind kind, const Topology& topology, int64_t bytes);

struct CostRow {
  std::string_view algorithm;
  int world = 0;
  int64_t bytes = 0;
  AllreduceCost cost;
  double seconds = 0, busiest_link_seconds = 0;
};

// A row for each algorithm, world and number of bytes, in this order; hierarchical only where there
// are several hosts with several ranks.
std::vector<CostRow> CostTable(std::span<const int> worlds, std::span<const int64_t> bytes,
                               const CostModel& model, int ranks_per_host = 1);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_COST_MODEL_H_
