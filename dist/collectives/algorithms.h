// The allreduce algorithms by name, for configs, command lines, the selector and tests.
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_H_

#include <span>
#include <string>
#include <string_view>

#include "core/status.h"
#include "dist/collectives/plan.h"
#include "dist/collectives/topology.h"

namespace ringtail {

enum class AllreduceKind {
  kSingleReducer,
  kRing,
  kRecursiveDoubling,
  kHalvingDoubling,
  kBinomialTree,
  kDoubleBinaryTree,
  kHierarchical,
};

struct AllreduceAlgorithm {
  AllreduceKind kind;
  std::string_view name;         // "ring"
  std::string_view description;  // one line, without a full stop
  Plan (*plan)(int rank, const Topology& topology, int64_t count);
};

// All of them, in the order of the enum.
std::span<const AllreduceAlgorithm> AllreduceAlgorithms();
const AllreduceAlgorithm& GetAllreduce(AllreduceKind kind);
// An unknown name is an InvalidArgument that lists the known ones.
StatusOr<const AllreduceAlgorithm*> FindAllreduce(std::string_view name);

// The plans of all ranks. For simulations: one rank needs only its own.
std::vector<Plan> AllPlans(const AllreduceAlgorithm& algorithm, const Topology& topology,
                           int64_t count);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_H_
