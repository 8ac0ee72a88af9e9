// Runs the plans of all ranks on arrays in memory, with the strictest partner that the rules of
// dist/collectives/plan.h allow: a send lasts until its receive is posted. So what finishes here
// cannot deadlock, whatever a transport buffers. Also checks that plans keep to their rules.
#ifndef RINGTAIL_TESTS_DIST_COLLECTIVES_PLAN_SIMULATOR_H_
#define RINGTAIL_TESTS_DIST_COLLECTIVES_PLAN_SIMULATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dist/collectives/plan.h"

namespace ringtail {

enum class Timing {
  kLockstep,  // a round starts when the one before has finished
  kEager,     // a step starts as early as the rules allow; ranks take turns at random
};

struct SimulationOptions {
  Timing timing = Timing::kLockstep;
  uint64_t seed = 0;  // of the turns
};

struct Simulation {
  std::string error;  // which step broke a rule or never met its partner; empty if all finished
  int rounds = 0;     // the most of any rank
  std::vector<int64_t> sent, received;  // elements, by rank
  std::vector<uint64_t> heard_of;  // by rank: bit r is set if rank r began before this one ended

  int64_t max_sent() const;
  int64_t max_received() const;
  int64_t max_through() const;  // sent and received
};

// (*arrays)[rank] is the rank's array before and after; all must have the same size. At most 64
// ranks.
template <typename T>
Simulation Simulate(const std::vector<Plan>& plans, std::vector<std::vector<T>>* arrays,
                    SimulationOptions options = {});

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_COLLECTIVES_PLAN_SIMULATOR_H_
