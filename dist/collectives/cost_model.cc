#include "dist/collectives/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/check.h"
#include "dist/collectives/algorithms/double_binary_tree.h"

namespace ringtail {
namespace {

// Rounded up: rounds until 1 has become at least `world` by doubling.
int64_t Log2(int64_t world) { return std::bit_width(static_cast<uint64_t>(world) - 1); }

AllreduceCost SingleReducerCost(int64_t world, double n) {
  const auto workers = static_cast<double>(world - 1);
  return {.rounds = 2,
          .sent_bytes = workers * n,
          .received_bytes = workers * n,
          .latencies = 2,
          .wire_bytes = 2 * workers * n,
          .reduced_bytes = workers * n};
}

AllreduceCost RingCost(int64_t world, double n) {
  const double most = static_cast<double>(world - 1) / static_cast<double>(world) * n;
  return {.rounds = 2 * (world - 1),
          .sent_bytes = 2 * most,
          .received_bytes = 2 * most,
          .latencies = 2 * (world - 1),
          .wire_bytes = 2 * most,
          .reduced_bytes = most};
}

AllreduceCost Folded(AllreduceCost cost, bool power_of_two, double n) {
  if (power_of_two) return cost;
  cost.rounds += 2;
  cost.latencies += 2;
  cost.sent_bytes += n;
  cost.received_bytes += n;
  cost.wire_bytes += 2 * n;
  cost.reduced_bytes += n;
  return cost;
}

AllreduceCost RecursiveDoublingCost(int64_t world, double n) {
  const auto places = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(world)));
  const int64_t rounds = Log2(places);
  const double bytes = static_cast<double>(rounds) * n;
  return Folded({.rounds = rounds,
                 .sent_bytes = bytes,
                 .received_bytes = bytes,
                 .latencies = rounds,
                 .wire_bytes = bytes,
                 .reduced_bytes = bytes},
                places == world, n);
}

AllreduceCost HalvingDoublingCost(int64_t world, double n) {
  const auto places = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(world)));
  AllreduceCost cost = RingCost(places, n);  // the same bytes in fewer rounds
  cost.rounds = cost.latencies = 2 * Log2(places);
  return Folded(cost, places == world, n);
}

AllreduceCost BinomialTreeCost(int64_t world, double n) {
  const double bytes = static_cast<double>(Log2(world)) * n;
  return {.rounds = 2 * Log2(world),
          .sent_bytes = bytes,
          .received_bytes = bytes,
          .latencies = 2 * Log2(world),
          .wire_bytes = 2 * bytes,
          .reduced_bytes = bytes};
}

AllreduceCost DoubleBinaryTreeCost(int64_t world, double n) {
  const double half = n / 2, segment_bytes = kTreeSegmentElements * kElementBytes;
  const auto segments = std::max<int64_t>(1, std::llround(std::ceil(half / segment_bytes)));
  const int64_t slots = 2 * (Log2(world) + segments - 1);  // of the reduction
  const double bytes = static_cast<double>(slots) * half / static_cast<double>(segments);
  return {.rounds = 2 * slots,
          .sent_bytes = 2 * n,
          .received_bytes = 2 * n,
          .latencies = 2 * slots,
          .wire_bytes = 2 * bytes,
          .reduced_bytes = bytes};
}

AllreduceCost HierarchicalCost(const Topology& topology, double n) {
  size_t largest = 0;
  for (int host = 0; host < topology.hosts(); ++host) {
    largest = std::max(largest, topology.RanksOf(host).size());
  }
  AllreduceCost cost = BinomialTreeCost(static_cast<int64_t>(largest), n);
  const AllreduceCost leaders = RingCost(topology.hosts(), n);
  cost.rounds += leaders.rounds;
  cost.sent_bytes += leaders.sent_bytes;
  cost.received_bytes += leaders.received_bytes;
  cost.latencies += leaders.latencies;
  cost.wire_bytes += leaders.wire_bytes;
  cost.reduced_bytes += leaders.reduced_bytes;
  return cost;
}

}  // namespace

double AllreduceCost::Seconds(const CostModel& model) const {
  return static_cast<double>(latencies) * model.latency_s + wire_bytes * model.seconds_per_byte +
         reduced_bytes * model.reduce_seconds_per_byte;
}

double AllreduceCost::BusiestLinkSeconds(const CostModel& model) const {
  return std::max(sent_bytes, received_bytes) * model.seconds_per_byte;
}

AllreduceCost FormulaCost(AllreduceKind kind, const Topology& topology, int64_t bytes) {
  const int world = topology.world();
  RT_CHECK(world > 0 && bytes >= 0, "a cost needs ranks and bytes");
  if (world == 1 || bytes == 0) return {};
  const auto n = static_cast<double>(bytes);
  switch (kind) {
    case AllreduceKind::kSingleReducer:
      return SingleReducerCost(world, n);
    case AllreduceKind::kRing:
      return RingCost(world, n);
    case AllreduceKind::kRecursiveDoubling:
      return RecursiveDoublingCost(world, n);
    case AllreduceKind::kHalvingDoubling:
      return HalvingDoublingCost(world, n);
    case AllreduceKind::kBinomialTree:
      return BinomialTreeCost(world, n);
    case AllreduceKind::kDoubleBinaryTree:
      return DoubleBinaryTreeCost(world, n);
    case AllreduceKind::kHierarchical:
      return HierarchicalCost(topology, n);
  }
  RT_CHECK(false, "every algorithm has a formula");
}

std::vector<CostRow> CostTable(std::span<const int> worlds, std::span<const int64_t> bytes,
                               const CostModel& model, int ranks_per_host) {
  std::vector<CostRow> rows;
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    for (const int world : worlds) {
      const Topology topology = Topology::Blocks(world, ranks_per_host);
      if (algorithm.kind == AllreduceKind::kHierarchical && !topology.has_levels()) continue;
      for (const int64_t n : bytes) {
        const AllreduceCost cost = FormulaCost(algorithm.kind, topology, n);
        rows.push_back({.algorithm = algorithm.name,
                        .world = world,
                        .bytes = n,
                        .cost = cost,
                        .seconds = cost.Seconds(model),
                        .busiest_link_seconds = cost.BusiestLinkSeconds(model)});
      }
    }
  }
  return rows;
}

}  // namespace ringtail
