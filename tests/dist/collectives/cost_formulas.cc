#include "tests/dist/collectives/cost_formulas.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/check.h"
#include "dist/collectives/algorithms/double_binary_tree.h"

namespace ringtail {
namespace {

// Rounded up: rounds until 1 has become at least `world` by doubling.
int64_t Log2(int64_t world) { return std::bit_width(static_cast<uint64_t>(world) - 1); }

FormulaCost SingleReducer(int64_t world, double n) {
  const auto workers = static_cast<double>(world - 1);
  return {.rounds = 2,
          .sent_bytes = workers * n,
          .received_bytes = workers * n,
          .latencies = 2,
          .wire_bytes = 2 * workers * n,
          .reduced_bytes = workers * n};
}

FormulaCost Ring(int64_t world, double n) {
  const double most = static_cast<double>(world - 1) / static_cast<double>(world) * n;
  return {.rounds = 2 * (world - 1),
          .sent_bytes = 2 * most,
          .received_bytes = 2 * most,
          .latencies = 2 * (world - 1),
          .wire_bytes = 2 * most,
          .reduced_bytes = most};
}

FormulaCost Folded(FormulaCost cost, bool power_of_two, double n) {
  if (power_of_two) return cost;
  cost.rounds += 2;
  cost.latencies += 2;
  cost.sent_bytes += n;
  cost.received_bytes += n;
  cost.wire_bytes += 2 * n;
  cost.reduced_bytes += n;
  return cost;
}

FormulaCost RecursiveDoubling(int64_t world, double n) {
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

FormulaCost HalvingDoubling(int64_t world, double n) {
  const auto places = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(world)));
  FormulaCost cost = Ring(places, n);  // the same bytes in fewer rounds
  cost.rounds = cost.latencies = 2 * Log2(places);
  return Folded(cost, places == world, n);
}

FormulaCost BinomialTree(int64_t world, double n) {
  const double bytes = static_cast<double>(Log2(world)) * n;
  return {.rounds = 2 * Log2(world),
          .sent_bytes = bytes,
          .received_bytes = bytes,
          .latencies = 2 * Log2(world),
          .wire_bytes = 2 * bytes,
          .reduced_bytes = bytes};
}

FormulaCost DoubleBinaryTree(int64_t world, double n) {
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

FormulaCost Hierarchical(const Topology& topology, double n) {
  size_t largest = 0;
  for (int host = 0; host < topology.hosts(); ++host) {
    largest = std::max(largest, topology.RanksOf(host).size());
  }
  FormulaCost cost = BinomialTree(static_cast<int64_t>(largest), n);
  const FormulaCost leaders = Ring(topology.hosts(), n);
  cost.rounds += leaders.rounds;
  cost.sent_bytes += leaders.sent_bytes;
  cost.received_bytes += leaders.received_bytes;
  cost.latencies += leaders.latencies;
  cost.wire_bytes += leaders.wire_bytes;
  cost.reduced_bytes += leaders.reduced_bytes;
  return cost;
}

// Of an algorithm that ignores which ranks share a host.
template <FormulaCost (*kFormula)(int64_t world, double n)>
FormulaCost Flat(const Topology& topology, double n) {
  return kFormula(topology.world(), n);
}

constexpr AllreduceFormula kFormulas[] = {
    {.algorithm = "single_reducer",
     .time_is_exact = TimeIsExact::kInEveryWorld,
     .of = Flat<SingleReducer>},
    {.algorithm = "ring", .time_is_exact = TimeIsExact::kInEveryWorld, .of = Flat<Ring>},
    {.algorithm = "recursive_doubling", .of = Flat<RecursiveDoubling>},
    {.algorithm = "halving_doubling", .of = Flat<HalvingDoubling>},
    {.algorithm = "binomial_tree", .of = Flat<BinomialTree>},
    {.algorithm = "double_binary_tree",
     .exact_counts = false,
     .time_is_exact = TimeIsExact::kNowhere,
     .of = Flat<DoubleBinaryTree>},
    // With one rank on each host it is the ring of the leaders.
    {.algorithm = "hierarchical", .time_is_exact = TimeIsExact::kInEveryWorld, .of = Hierarchical},
};

}  // namespace

double FormulaCost::Seconds(const LinkModel& links) const {
  return static_cast<double>(latencies) * links.latency_s + wire_bytes * links.seconds_per_byte +
         reduced_bytes * links.reduce_seconds_per_byte;
}

FormulaCost AllreduceFormula::Cost(const Topology& topology, int64_t bytes) const {
  RT_CHECK(topology.world() > 0 && bytes >= 0, "a cost needs ranks and bytes");
  return topology.world() == 1 || bytes == 0 ? FormulaCost()
                                             : of(topology, static_cast<double>(bytes));
}

const AllreduceFormula& FormulaOf(std::string_view algorithm) {
  for (const AllreduceFormula& formula : kFormulas) {
    if (formula.algorithm == algorithm) return formula;
  }
  RT_CHECK(false, fmt::format("{} has no row in cost_formulas.cc", algorithm));
}

}  // namespace ringtail
