// AlgorithmSelector: which allreduce to use for so many bytes, and why.
//
//   "auto"     the cheapest on the measured network, by plan_cost.h; between hosts, of those within
//              3 % of it the one whose ranks send to the fewest others; never the single reducer,
//              which is a baseline
//   "ring"     always this one
//   "recursive_doubling:0-65536;ring:65536-"    by a table of sizes (size_table.h)
//
// A probe is no more exact than 3 %, and a price knows nothing of messages that share a wire because
// one rank is late: with one peer each, as in a ring, none do. (A step of eight ranks at 31 Mbit/s that
// exchange 11.2 MB, 5.55 s by the price of either: 5.76 s by rings, 7.8 to 9.4 s by halving and doubling;
// dist/planner/README.md.)
//
// All ranks must select alike, or they wait for each other for ever: give all of them the same
// setting, topology and network (measured by one rank, told to the others). Selection itself is a
// pure function of these.
#ifndef RINGTAIL_DIST_COLLECTIVES_SELECTOR_H_
#define RINGTAIL_DIST_COLLECTIVES_SELECTOR_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "dist/collectives/algorithms.h"
#include "dist/collectives/plan_cost.h"
#include "dist/collectives/size_table.h"

namespace ringtail {

struct AllreduceChoice {
  const AllreduceAlgorithm* algorithm = nullptr;
  // For people: "ring: 25 MB over 6 ranks at 117 MB/s, 362 ms; double_binary_tree 475 ms", the
  // second being the next best.
  std::string why;
};

// Thread-safety: one thread.
class AlgorithmSelector {
 public:
  // Only "auto" uses the network. A topology has at least one rank.
  static StatusOr<AlgorithmSelector> Create(std::string_view setting, Topology topology,
                                            const NetworkModel& network);

  // Cost of "auto": makes and prices the plans of all ranks, once for each number of bytes that is
  // ever asked for. For 25 MB: 0.4 ms for 8 ranks, 3 ms for 32, 20 ms for 128, 70 ms for 256.
  const AllreduceChoice& Select(int64_t bytes);

  // What "auto" has selected so far, by bytes; empty for other settings. The order of a sum, and so
  // its last bits, depend on the algorithm: a resumed run keeps what it began with, though the
  // network is measured anew.
  std::map<int64_t, std::string> Selected() const;
  // From now on "auto" selects these, except for those that do not suit the topology, as the run
  // began on other hosts: for their bytes it selects by itself, as on every other rank. Returns the
  // names of these. No effect on other settings. DataLoss if there is no such algorithm.
  StatusOr<std::set<std::string>> Keep(const std::map<int64_t, std::string>& selected);

 private:
  AlgorithmSelector(std::vector<SizeTableEntry> table, Topology topology,
                    const NetworkModel& network);
  AllreduceChoice Cheapest(int64_t bytes) const;
  AllreduceChoice FromTable(int64_t bytes) const;
  std::string DescribeNetwork() const;

  std::vector<SizeTableEntry> table_;  // empty: the cheapest
  Topology topology_;
  NetworkModel network_;
  std::map<int64_t, AllreduceChoice> choices_;  // by bytes
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_SELECTOR_H_
