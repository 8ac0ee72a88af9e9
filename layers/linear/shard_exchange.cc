#include "layers/linear/shard_exchange.h"

#include <algorithm>

namespace ringtail {

int64_t AloneShards::BeginAllGather(std::span<float> array) {
  const size_t part = array.size() / shard_.ranks;
  for (int rank = 0; rank < shard_.ranks; ++rank) {
    if (rank != shard_.rank) std::ranges::fill(array.subspan(rank * part, part), 0.0F);
  }
  return 0;
}

// What the others have for this rank is zero: its part is the sum already.
int64_t AloneShards::BeginReduceScatter(std::span<float>) { return 0; }

int64_t AloneShards::BeginAllToAll(std::span<float> array) {
  const std::span<float> to = array.first(array.size() / 2), from = array.subspan(to.size());
  const size_t block = to.size() / shard_.ranks, own = shard_.rank * block;
  std::ranges::fill(from, 0.0F);
  std::ranges::copy(to.subspan(own, block), from.begin() + static_cast<std::ptrdiff_t>(own));
  return 0;
}

}  // namespace ringtail
