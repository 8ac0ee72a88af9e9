#include "dist/collectives/algorithms.h"

#include <fmt/format.h>

#include "core/config/nearest_name.h"
#include "dist/collectives/algorithms/binomial_tree.h"
#include "dist/collectives/algorithms/double_binary_tree.h"
#include "dist/collectives/algorithms/halving_doubling.h"
#include "dist/collectives/algorithms/hierarchical.h"
#include "dist/collectives/algorithms/recursive_doubling.h"
#include "dist/collectives/algorithms/ring.h"
#include "dist/collectives/algorithms/single_reducer.h"

namespace ringtail {
namespace {

// An algorithm that ignores which ranks share a host.
template <Plan (*kAllreduce)(int rank, int world, int64_t count)>
Plan Flat(int rank, const Topology& topology, int64_t count) {
  return kAllreduce(rank, topology.world(), count);
}

Plan DoubleBinaryTree(int rank, int world, int64_t count) {
  return DoubleBinaryTreeAllreduce(rank, world, count);
}

Plan HierarchicalWithRing(int rank, const Topology& topology, int64_t count) {
  return HierarchicalAllreduce(rank, topology, count, RingAllreduce);
}

constexpr AllreduceAlgorithm kAlgorithms[] = {
    // A price flatters it: rank 0 handles N - 1 messages for nothing there.
    {"single_reducer", "rank 0 adds everything up: the baseline, whose time grows with the world",
     Flat<SingleReducerAllreduce>, AutoUse::kNever},
    {"ring", "fewest bytes, rounds grow with the world: long messages", Flat<RingAllreduce>},
    {"recursive_doubling", "fewest rounds, every round sends everything: short messages",
     Flat<RecursiveDoublingAllreduce>},
    {"halving_doubling",
     "fewest bytes in few rounds (Rabenseifner): medium and long messages, best in worlds of 2^k",
     Flat<HalvingDoublingAllreduce>},
    {"binomial_tree", "reduce to rank 0 and broadcast, both by a binomial tree",
     Flat<BinomialTreeAllreduce>},
    {"double_binary_tree",
     "two pipelined trees with half of the data each: long messages in large worlds",
     Flat<DoubleBinaryTree>},
    {"hierarchical", "within each host by a tree, between the hosts' leaders by a ring",
     HierarchicalWithRing, AutoUse::kWithLevels},
};

}  // namespace

std::span<const AllreduceAlgorithm> AllreduceAlgorithms() { return kAlgorithms; }

StatusOr<const AllreduceAlgorithm*> FindAllreduce(std::string_view name) {
  std::vector<std::string> names;
  for (const AllreduceAlgorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return &algorithm;
    names.emplace_back(algorithm.name);
  }
  const std::string nearest = NearestName(name, names);
  return InvalidArgument(fmt::format(
      "unknown allreduce algorithm '{}'{}; known are {}", name,
      nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest), fmt::join(names, ", ")));
}

std::vector<Plan> AllPlans(const AllreduceAlgorithm& algorithm, const Topology& topology,
                           int64_t count) {
  std::vector<Plan> plans;
  plans.reserve(topology.host_of_rank.size());
  for (int rank = 0; rank < topology.world(); ++rank) {
    plans.push_back(algorithm.plan(rank, topology, count));
  }
  return plans;
}

}  // namespace ringtail
