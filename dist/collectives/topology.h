// Topology: which ranks share a host. Between them messages are faster, and the wire of a host is
// shared by all its ranks.
#ifndef RINGTAIL_DIST_COLLECTIVES_TOPOLOGY_H_
#define RINGTAIL_DIST_COLLECTIVES_TOPOLOGY_H_

#include <vector>

namespace ringtail {

struct Topology {
  std::vector<int> host_of_rank;  // hosts are numbered 0, 1, ... in the order of their first ranks

  // Ranks 0 .. ranks_per_host - 1 on host 0, the next ones on host 1, ...; the last may have fewer.
  static Topology Blocks(int world, int ranks_per_host);

  int world() const { return static_cast<int>(host_of_rank.size()); }
  int hosts() const;
  // Several hosts, and several ranks on one of them: only then does a hierarchy make sense.
  bool has_levels() const { return hosts() > 1 && hosts() < world(); }
  std::vector<int> RanksOf(int host) const;  // ascending
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_TOPOLOGY_H_
