// The allreduce algorithms by name, for configs, command lines, the selector and tests. The table
// in algorithms.cc is the only list of them.
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "dist/collectives/plan.h"
#include "dist/collectives/topology.h"

namespace ringtail {

// What "auto" does with an algorithm.
enum class AutoUse {
  kAlways,      // prices it
  kWithLevels,  // prices it where several hosts have several ranks (Topology::has_levels)
  kNever,       // a baseline, chosen by name only
};

struct AllreduceAlgorithm {
  std::string_view name;         // "ring"
  std::string_view description;  // one line, without a full stop
  Plan (*plan)(int rank, const Topology& topology, int64_t count);
  AutoUse auto_use = AutoUse::kAlways;

  bool Suits(const Topology& topology) const {
    return auto_use != AutoUse::kWithLevels || topology.has_levels();
  }
};

std::span<const AllreduceAlgorithm> AllreduceAlgorithms();
// An unknown name is an InvalidArgument that lists the known ones.
StatusOr<const AllreduceAlgorithm*> FindAllreduce(std::string_view name);

// The plans of all ranks. For simulations and prices: one rank needs only its own.
std::vector<Plan> AllPlans(const AllreduceAlgorithm& algorithm, const Topology& topology,
                           int64_t count);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_H_
