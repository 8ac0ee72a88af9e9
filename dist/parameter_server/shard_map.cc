#include "dist/parameter_server/shard_map.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace ringtail {

ShardMap DivideIntoShards(std::span<const int64_t> bytes, int shards) {
  RT_CHECK(shards >= 1, "parameters are on a server");
  ShardMap map{.parameters = std::vector<std::vector<size_t>>(shards),
               .bytes = std::vector<int64_t>(shards),
               .shard_of = std::vector<int>(bytes.size())};
  std::vector<size_t> by_size(bytes.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  for (const size_t parameter : by_size) {
    const auto smallest = std::ranges::min_element(map.bytes);
    *smallest += bytes[parameter];
    map.shard_of[parameter] = static_cast<int>(smallest - map.bytes.begin());
  }
  for (size_t i = 0; i < bytes.size(); ++i) map.parameters[map.shard_of[i]].push_back(i);
  return map;
}

}  // namespace ringtail
