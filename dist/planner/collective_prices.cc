#include "dist/planner/collective_prices.h"

#include "dist/collectives/algorithms.h"
#include "dist/collectives/algorithms/all_to_all.h"
#include "dist/collectives/allgather_choice.h"
#include "dist/collectives/plan_cost.h"

namespace ringtail {
namespace {

// Plans of longer arrays would have too many segments to be made for a question of milliseconds.
constexpr int64_t kMostPlannedElements = int64_t{1} << 26;

NetworkModel Delayed(NetworkModel network, double seconds) {
  network.within_host.latency_s += seconds;
  network.between_hosts.latency_s += seconds;
  return network;
}

}  // namespace

StatusOr<CollectivePrices> CollectivePrices::Create(const std::string& algorithm,
                                                    const RegularWorld& world,
                                                    const NetworkModel& network,
                                                    double busy_delay) {
  RT_ASSIGN_OR_RETURN(AlgorithmSelector selector,
                      AlgorithmSelector::Create(algorithm, world.topology(), network));
  return CollectivePrices(std::move(selector), algorithm == "auto", world, network, busy_delay);
}

CollectivePrices::CollectivePrices(AlgorithmSelector selector, bool chooses,
                                   const RegularWorld& world, const NetworkModel& network,
                                   double busy_delay)
    : selector_(std::move(selector)),
      chooses_(chooses),
      world_(world),
      topology_(world.topology()),
      network_(network),
      busy_delay_(busy_delay) {}

const CollectivePrice& CollectivePrices::Allreduce(int64_t elements) {
  return Of(Kind::kAllreduce, elements);
}
const CollectivePrice& CollectivePrices::Allgather(int64_t elements) {
  return Of(Kind::kAllgather, elements);
}
const CollectivePrice& CollectivePrices::AllToAll(int64_t block) {
  return Of(Kind::kAllToAll, block);
}

const CollectivePrice& CollectivePrices::Of(Kind kind, int64_t elements) {
  const std::pair key{kind, elements};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, Compute(kind, elements)).first->second;
}

template <typename PriceOn>
CollectivePrice CollectivePrices::IdleAndBusy(const PriceOn& price_on) const {
  CollectivePrice price = price_on(network_);
  price.busy_seconds =
      busy_delay_ > 0 ? price_on(Delayed(network_, busy_delay_)).seconds : price.seconds;
  return price;
}

CollectivePrice CollectivePrices::Compute(Kind kind, int64_t elements) {
  if (world_.ranks() == 1 || elements == 0) return {};
  if (kind == Kind::kAllreduce) return Allreduced(elements);
  const bool planned = world_.ranks() <= kMostPlannedRanks && elements <= kMostPlannedElements;
  const int world = topology_.world();
  std::vector<Plan> plans;
  if (kind == Kind::kAllgather) {
    if (!planned) {
      return IdleAndBusy([&](const NetworkModel& network) {
        return AllgatherByFormula(world_, elements, network);
      });
    }
    const AllgatherAlgorithm& algorithm =
        CheaperAllgather(topology_, elements, kElementBytes, network_);
    for (int rank = 0; rank < world; ++rank) {
      plans.push_back(algorithm.plan(rank, world, elements));
    }
  } else {
    if (!planned) {
      return IdleAndBusy([&](const NetworkModel& network) {
        return AllToAllByFormula(world_, elements, network);
      });
    }
    for (int rank = 0; rank < world; ++rank) {
      plans.push_back(ringtail::AllToAll(rank, world, elements));
    }
  }
  return OfPlans(plans);
}

CollectivePrice CollectivePrices::Allreduced(int64_t elements) {
  const bool planned = world_.ranks() <= kMostPlannedRanks && elements <= kMostPlannedElements;
  const auto by_formula = [&](const AllreduceAlgorithm& algorithm) {
    return IdleAndBusy([&](const NetworkModel& network) {
      return AllreduceByFormula(algorithm, world_, elements, network);
    });
  };
  if (planned || !chooses_) {
    const AllreduceAlgorithm& algorithm = *selector_.Select(elements * kElementBytes).algorithm;
    return planned ? OfPlans(AllPlans(algorithm, topology_, elements)) : by_formula(algorithm);
  }
  CollectivePrice best;
  bool first = true;
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    if (algorithm.auto_use == AutoUse::kNever || !algorithm.Suits(topology_)) continue;
    const CollectivePrice price = by_formula(algorithm);
    if (first || price.seconds < best.seconds) best = price;
    first = false;
  }
  return best;
}

CollectivePrice CollectivePrices::OfPlans(const std::vector<Plan>& plans) const {
  return IdleAndBusy([&](const NetworkModel& network) -> CollectivePrice {
    const PlanCost cost = CostOfPlans(plans, topology_, network);
    return {.seconds = cost.seconds,
            .sent_bytes = cost.sent_bytes,
            .sent_messages = cost.sent_messages};
  });
}

}  // namespace ringtail
