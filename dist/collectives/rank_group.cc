#include "dist/collectives/rank_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/check.h"

namespace ringtail {

RankGroup RankGroup::World(int world_size) {
  RT_CHECK(world_size > 0, "a world has at least one rank");
  std::vector<int> ranks(static_cast<size_t>(world_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return RankGroup(std::move(ranks));
}

RankGroup::RankGroup(std::vector<int> ranks) : ranks_(std::move(ranks)) {
  RT_CHECK(!ranks_.empty(), "a group has at least one rank");
  RT_CHECK(std::set<int>(ranks_.begin(), ranks_.end()).size() == ranks_.size(),
           fmt::format("a group of {} ranks names one of them twice", ranks_.size()));
}

std::optional<int> RankGroup::MemberOf(int rank) const {
  const auto found = std::ranges::find(ranks_, rank);
  if (found == ranks_.end()) return std::nullopt;
  return static_cast<int>(found - ranks_.begin());
}

Topology RankGroup::Within(const Topology& world) const {
  std::map<int, int> hosts;  // of the world -> of the group
  Topology topology;
  for (const int rank : ranks_) {
    RT_CHECK(rank >= 0 && rank < world.world(),
             fmt::format("a group has rank {}, and the world {} ranks", rank, world.world()));
    const int host = world.host_of_rank[static_cast<size_t>(rank)];
    topology.host_of_rank.push_back(
        hosts.emplace(host, static_cast<int>(hosts.size())).first->second);
  }
  return topology;
}

}  // namespace ringtail
