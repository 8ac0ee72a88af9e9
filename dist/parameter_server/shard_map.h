// ShardMap: which server holds which parameters. Whole parameters, since rules such as Muon, LARS
// and LAMB need a parameter's gradient in one place; as equal in bytes as that allows.
//
//   bytes 9 7 6 5 5     the largest first, each to the shard with the fewest bytes so far
//     shard 0   9              9 5             14
//     shard 1      7   7 6         7 6 5       18     (the best division: 9 + 7 and 6 + 5 + 5)
//
// The largest shard has at most 4/3 - 1/(3 shards) times the bytes of the best division (Graham
// 1969, "Bounds on Multiprocessing Timing Anomalies", theorem 2), and at most the mean plus one
// parameter. A parameter larger than a mean shard cannot be divided; with more shards than
// parameters some stay empty. The same bytes give the same map on every rank: ties go to the first.
// Thread-safety: a pure function. Cost: parameters * (log parameters + shards).
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_SHARD_MAP_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_SHARD_MAP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ringtail {

struct ShardMap {
  std::vector<std::vector<size_t>> parameters;  // of each shard, ascending
  std::vector<int64_t> bytes;                   // of each shard
  std::vector<int> shard_of;                    // by parameter
};

// bytes >= 0, of each parameter; shards >= 1.
ShardMap DivideIntoShards(std::span<const int64_t> bytes, int shards);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_SHARD_MAP_H_
