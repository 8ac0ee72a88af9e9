#include "dist/planner/closed_forms.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "core/check.h"
#include "core/round.h"
#include "dist/collectives/algorithms/double_binary_tree.h"

namespace ringtail {
namespace {

// On the path of messages that wait for each other; bytes as doubles, because they multiply.
struct Formula {
  double latencies = 0, wire_bytes = 0, reduced_bytes = 0, sent_bytes = 0, messages = 0;

  Formula operator+(const Formula& next) const {
    return {latencies + next.latencies, wire_bytes + next.wire_bytes,
            reduced_bytes + next.reduced_bytes, sent_bytes + next.sent_bytes,
            messages + next.messages};
  }
  double Seconds(const LinkModel& link) const {
    return latencies * link.latency_s + wire_bytes * link.seconds_per_byte +
           reduced_bytes * link.reduce_seconds_per_byte;
  }
};

// Rounded up.
double Log2(int64_t n) { return std::bit_width(static_cast<uint64_t>(n) - 1); }

double Bytes(int64_t elements) {
  return static_cast<double>(elements) * static_cast<double>(kElementBytes);
}

// The longest path follows a part with the most elements round the ring.
Formula Ring(int64_t ranks, int64_t elements) {
  const auto rounds = static_cast<double>(ranks - 1);
  const double part = Bytes(CeilDivide(elements, ranks));
  return {.latencies = 2 * rounds,
          .wire_bytes = 2 * rounds * part,
          .reduced_bytes = rounds * part,
          .sent_bytes = 2 * rounds * part,
          .messages = 2 * rounds};
}

// Ranks beyond the largest power of two give their array to one within it, and get it back.
Formula WithFolding(const Formula& inner, bool power_of_two, double bytes) {
  if (power_of_two) return inner;
  return inner + Formula{.latencies = 2,
                         .wire_bytes = 2 * bytes,
                         .reduced_bytes = bytes,
                         .sent_bytes = bytes,
                         .messages = 1};
}

Formula RecursiveDoubling(int64_t ranks, int64_t elements) {
  const auto places = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(ranks)));
  const double rounds = Log2(places), bytes = rounds * Bytes(elements);
  return WithFolding({rounds, bytes, bytes, bytes, rounds}, places == ranks, Bytes(elements));
}

// In each round the largest half of the largest half.
Formula HalvingDoubling(int64_t ranks, int64_t elements) {
  const auto places = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(ranks)));
  double halves = 0;
  for (int64_t rest = elements, parts = places; parts > 1; parts /= 2) {
    rest = CeilDivide(rest, 2);
    halves += Bytes(rest);
  }
  return WithFolding({.latencies = 2 * Log2(places),
                      .wire_bytes = 2 * halves,
                      .reduced_bytes = halves,
                      .sent_bytes = 2 * halves,
                      .messages = 2 * Log2(places)},
                     places == ranks, Bytes(elements));
}

Formula BinomialTree(int64_t ranks, int64_t elements) {
  const double bytes = Log2(ranks) * Bytes(elements);
  return {2 * Log2(ranks), 2 * bytes, bytes, bytes, Log2(ranks)};
}

Formula DoubleBinaryTree(int64_t ranks, int64_t elements) {
  const int64_t half = CeilDivide(elements, 2);
  const int64_t segments = std::max<int64_t>(1, CeilDivide(half, kTreeSegmentElements));
  const double slots = 2 * (Log2(ranks) + static_cast<double>(segments - 1));
  const double bytes = slots * Bytes(CeilDivide(half, segments));
  // Each half: a part of every segment towards the root of one tree, and to two below in the other.
  return {2 * slots, 2 * bytes, bytes, 2 * Bytes(elements), 4 * static_cast<double>(segments)};
}

Formula SingleReducer(int64_t ranks, int64_t elements) {
  const double bytes = static_cast<double>(ranks - 1) * Bytes(elements);
  return {2, 2 * bytes, bytes, bytes, static_cast<double>(ranks - 1)};
}

Formula FlatFormula(std::string_view algorithm, int64_t ranks, int64_t elements) {
  if (algorithm == "ring") return Ring(ranks, elements);
  if (algorithm == "recursive_doubling") return RecursiveDoubling(ranks, elements);
  if (algorithm == "halving_doubling") return HalvingDoubling(ranks, elements);
  if (algorithm == "binomial_tree") return BinomialTree(ranks, elements);
  if (algorithm == "double_binary_tree") return DoubleBinaryTree(ranks, elements);
  RT_CHECK(algorithm == "single_reducer", "every algorithm has a formula");
  return SingleReducer(ranks, elements);
}

// A link that all messages of a world may be priced with: the wire, which the ranks of a host share
// in every round.
LinkModel SlowestLink(const RegularWorld& world, const NetworkModel& network) {
  const LinkModel& within = network.within_host;
  if (world.hosts == 1) return within;
  LinkModel link = network.between_hosts;
  if (world.ranks_per_host == 1) return link;
  link.latency_s = std::max(link.latency_s, within.latency_s);
  link.seconds_per_byte =
      std::max(link.seconds_per_byte * world.ranks_per_host, within.seconds_per_byte);
  return link;
}

// The mean link of a message that takes `hops` of a ring: one message at a time crosses each wire,
// and one hop in ranks_per_host is over a wire.
LinkModel RingLink(const RegularWorld& world, const NetworkModel& network, double hops) {
  const LinkModel& within = network.within_host;
  if (world.hosts == 1) return within;
  LinkModel link = network.between_hosts;
  if (world.ranks_per_host == 1) return link;
  const double crossings = std::ceil(hops / world.ranks_per_host) / hops;
  link.latency_s = crossings * link.latency_s + (1 - crossings) * within.latency_s;
  link.seconds_per_byte = std::max(link.seconds_per_byte, within.seconds_per_byte);
  return link;
}

CollectivePrice PriceOf(const Formula& formula, const LinkModel& link) {
  return {.seconds = formula.Seconds(link),
          .sent_bytes = std::llround(formula.sent_bytes),
          .sent_messages = std::llround(formula.messages)};
}

}  // namespace

CollectivePrice AllreduceByFormula(const AllreduceAlgorithm& algorithm, const RegularWorld& world,
                                   int64_t elements, const NetworkModel& network) {
  if (world.ranks() == 1 || elements == 0) return {};
  if (algorithm.name == "hierarchical") {
    const Formula within = BinomialTree(world.ranks_per_host, elements);
    const Formula leaders = Ring(world.hosts, elements);
    const double seconds =
        within.Seconds(network.within_host) + leaders.Seconds(network.between_hosts);
    return {.seconds = seconds,
            .sent_bytes = static_cast<int64_t>(within.sent_bytes + leaders.sent_bytes),
            .sent_messages = std::llround(within.messages + leaders.messages)};
  }
  const Formula formula = FlatFormula(algorithm.name, world.ranks(), elements);
  return PriceOf(formula, algorithm.name == "ring" ? RingLink(world, network, formula.latencies)
                                                   : SlowestLink(world, network));
}

CollectivePrice AllgatherByFormula(const RegularWorld& world, int64_t elements,
                                   const NetworkModel& network) {
  if (world.ranks() == 1 || elements == 0) return {};
  const auto others = static_cast<double>(world.ranks() - 1);
  const double bytes = others * Bytes(CeilDivide(elements, world.ranks()));
  const CollectivePrice ring =
      PriceOf({.latencies = others, .wire_bytes = bytes, .sent_bytes = bytes, .messages = others},
              RingLink(world, network, others));
  const CollectivePrice bruck =
      PriceOf({.latencies = Log2(world.ranks()),
               .wire_bytes = bytes,
               .sent_bytes = bytes,
               .messages = 2 * Log2(world.ranks()) - 1},  // blocks that wrap around are two
              SlowestLink(world, network));
  return bruck.seconds < ring.seconds ? bruck : ring;
}

CollectivePrice AllToAllByFormula(const RegularWorld& world, int64_t block,
                                  const NetworkModel& network) {
  if (world.ranks() == 1 || block == 0) return {};
  const auto others = static_cast<double>(world.ranks() - 1);
  const double bytes = others * Bytes(block);
  return PriceOf({.latencies = 1, .wire_bytes = bytes, .sent_bytes = bytes, .messages = others},
                 SlowestLink(world, network));
}

}  // namespace ringtail
