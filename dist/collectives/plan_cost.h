// What plans cost, computed from the plans themselves: a clock in place of a network.
//
//      sender    |== bytes * beta ==|
//                 `- alpha -.
//      receiver              |== bytes * beta ==|+ bytes * gamma +|  if it adds
//
// Messages between two ranks of one host leave and arrive at ports of the two ranks; messages
// between hosts at ports of the two hosts, which their ranks share. A port carries one message at a
// time in each direction, first come, first served. A sender need not wait for its receiver, but
// the receiver for its own round: rounds follow each other on each rank. A rank adds one message
// before it takes the next. An executor that starts steps early, as plan.h allows, or overlaps
// adding with receiving, can only be faster.
//
// A pure function: every rank computes the same price. Cost: some 200 ns per step.
#ifndef RINGTAIL_DIST_COLLECTIVES_PLAN_COST_H_
#define RINGTAIL_DIST_COLLECTIVES_PLAN_COST_H_

#include <cstdint>
#include <vector>

#include "dist/collectives/link_model.h"
#include "dist/collectives/plan.h"
#include "dist/collectives/topology.h"

namespace ringtail {

struct PlanCost {
  int64_t rounds = 0;                          // of the rank with the most
  int64_t sent_bytes = 0, received_bytes = 0;  // of the ranks with the most
  int64_t sent_messages = 0;                   // the same; nothing is sent of no elements
  double seconds = 0;                          // until the last rank has finished
};

// plans[rank] is that of the rank; they must fit each other.
PlanCost CostOfPlans(const std::vector<Plan>& plans, const Topology& topology,
                     const NetworkModel& network);
// With each rank on a host of its own.
PlanCost CostOfPlans(const std::vector<Plan>& plans, const LinkModel& links);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_PLAN_COST_H_
