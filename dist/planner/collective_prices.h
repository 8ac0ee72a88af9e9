// CollectivePrices: seconds and bytes of the collectives of a world, each priced once.
//
//   up to 16 ranks     the plans that the executor would run, of the algorithm that the selector
//                      would choose (selector.h, allgather_choice.h), by CostOfPlans
//   more ranks         closed_forms.h, of the cheapest algorithm
//
// Cost: of a size that is new, that of plan_cost.h for all plans, or of a formula; else a look-up.
// Memory: one entry for each size. Thread-safety: one thread.
#ifndef RINGTAIL_DIST_PLANNER_COLLECTIVE_PRICES_H_
#define RINGTAIL_DIST_PLANNER_COLLECTIVE_PRICES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "dist/collectives/plan.h"
#include "dist/collectives/selector.h"
#include "dist/planner/closed_forms.h"

namespace ringtail {

inline constexpr int64_t kMostPlannedRanks = 16;

class CollectivePrices {
 public:
  // `algorithm`: as dist.algorithm. InvalidArgument for an unknown one. `busy_delay`: seconds that a
  // message waits for a thread of a rank that computes.
  static StatusOr<CollectivePrices> Create(const std::string& algorithm, const RegularWorld& world,
                                           const NetworkModel& network, double busy_delay = 0);

  const CollectivePrice& Allreduce(int64_t elements);
  const CollectivePrice& Allgather(int64_t elements);  // of the whole array
  const CollectivePrice& AllToAll(int64_t block);      // elements from each rank to each rank

 private:
  enum class Kind { kAllreduce, kAllgather, kAllToAll };
  CollectivePrices(AlgorithmSelector selector, bool chooses, const RegularWorld& world,
                   const NetworkModel& network, double busy_delay);
  CollectivePrice Compute(Kind kind, int64_t elements);
  CollectivePrice Allreduced(int64_t elements);
  CollectivePrice OfPlans(const std::vector<Plan>& plans) const;
  // `price_on`: the price on a network. Asked twice if messages to busy ranks take longer.
  template <typename PriceOn>
  CollectivePrice IdleAndBusy(const PriceOn& price_on) const;
  const CollectivePrice& Of(Kind kind, int64_t elements);

  AlgorithmSelector selector_;
  bool chooses_ = false;  // "auto"
  RegularWorld world_;
  Topology topology_;
  NetworkModel network_;
  double busy_delay_ = 0;
  std::map<std::pair<Kind, int64_t>, CollectivePrice> known_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_COLLECTIVE_PRICES_H_
