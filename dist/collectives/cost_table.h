// What every allreduce algorithm costs, as a table priced from its plans (plan_cost.h): what
// `bench_allreduce --model` prints. All links are alike.
#ifndef RINGTAIL_DIST_COLLECTIVES_COST_TABLE_H_
#define RINGTAIL_DIST_COLLECTIVES_COST_TABLE_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dist/collectives/link_model.h"
#include "dist/collectives/plan_cost.h"

namespace ringtail {

struct CostRow {
  std::string_view algorithm;
  int world = 0;
  int64_t bytes = 0;  // of the array
  PlanCost cost;
  // How long the busiest link is busy in its busier direction. No schedule of the same messages is
  // faster; it is often quoted as "the" time (Baidu 2017).
  double busiest_link_seconds = 0;
};

// A row for each algorithm, world and array size, in this order; hierarchical algorithms only where
// there are several hosts with several ranks. Sizes are rounded up to whole elements.
// Cost: some 200 ns per step of a plan. Thread-safety: a function without state.
std::vector<CostRow> CostTable(std::span<const int> worlds, std::span<const int64_t> bytes,
                               const LinkModel& links, int ranks_per_host = 1);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_COST_TABLE_H_
