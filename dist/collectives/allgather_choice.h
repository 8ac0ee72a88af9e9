// Which allgather to use: Bruck's, which has few rounds, or the ring, which spares the wires that
// ranks of a host share. The cheaper one by plan_cost.h; if the prices are nearly the same, the
// ring, where each rank talks to its two neighbours only.
//
// All ranks must choose alike: give all of them the same arguments. A pure function.
// Cost: makes and prices the plans of all ranks: 40 us for 8 ranks, 0.7 ms for 32, 10 ms for 128.
#ifndef RINGTAIL_DIST_COLLECTIVES_ALLGATHER_CHOICE_H_
#define RINGTAIL_DIST_COLLECTIVES_ALLGATHER_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/status.h"
#include "dist/collectives/plan.h"
#include "dist/collectives/plan_cost.h"
#include "dist/collectives/topology.h"

namespace ringtail {

struct AllgatherAlgorithm {
  std::string_view name;  // "ring"
  Plan (*plan)(int rank, int world, int64_t count);
};

std::span<const AllgatherAlgorithm> AllgatherAlgorithms();
// Null for "auto"; an unknown name is an InvalidArgument that lists the known ones.
StatusOr<const AllgatherAlgorithm*> FindAllgather(std::string_view name);

// For an array of `count` elements. `network`: as measured; if nothing was (all 0), gigabit
// Ethernet between hosts and shared memory within one are taken for it.
const AllgatherAlgorithm& CheaperAllgather(const Topology& topology, int64_t count,
                                           size_t element_bytes, const NetworkModel& network);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALLGATHER_CHOICE_H_
