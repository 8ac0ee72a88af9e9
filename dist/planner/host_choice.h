// HostChoice: which of the hosts of a job should train, and how.
//
//   host       0     1     2     3     4         seconds of a step, as facts have it = 1
//   slowness   1    1.0   1.1   1.0   5.0
//              \______ n fastest ____/            for every n: the best choice of n hosts, all as
//                                                 fast as the slowest of them; then the best n
//   images        evenly, or by speed (shares_by_speed.h), by which also a slow host can be of use
//
// Host 0 always trains: it writes the files.
// Cost: a search for each number of hosts, or two. Thread-safety: a value; functions without state.
#ifndef RINGTAIL_DIST_PLANNER_HOST_CHOICE_H_
#define RINGTAIL_DIST_PLANNER_HOST_CHOICE_H_

#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "dist/planner/network_facts.h"
#include "dist/planner/planner.pb.h"
#include "dist/planner/search.h"

namespace ringtail {

enum class ShareRule {
  kEven,
  kBySpeed,
  // By speed if the best of those choices is faster than the best of even shares by a factor of
  // kWorthShares. A part of a rank's step (train.accumulation) is then no larger than what was
  // measured, and with batch norm of each rank's own images no smaller than kFewestForStatistics.
  kFaster,
};
inline constexpr double kWorthShares = 1.05;

struct HostChoice {
  std::vector<int> hosts;  // that train, ascending
  Prediction best;         // of them
  Prediction one_host;     // host 0 alone
  // All hosts, or as many as have images; gradients added up in every step, with the default buckets.
  Prediction dense;
  std::optional<Prediction> even;  // the best of even shares, where kFaster has taken others
};

// `facts` are a rank's of host 0, `slowness` has a number > 0 for each of network.hosts hosts.
// `space.hosts` and `space.by_speed` do not count; the first of its batches is that of `one_host`, of
// `dense` (by speed only if `rule` is kBySpeed) and of any choice of one host. Of numbers of hosts
// within 2 % of the fastest the one that changes training least (search.h Gentlest).
StatusOr<HostChoice> ChooseHosts(const PlannerFacts& facts, const NetworkFacts& network,
                                 std::span<const double> slowness, const SearchSpace& space,
                                 ShareRule rule = ShareRule::kEven);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_HOST_CHOICE_H_
