#include "apps/trainer/sharding/world_shards.h"

#include <algorithm>

namespace ringtail {

int64_t WorldShards::BeginAllGather(std::span<float> array) {
  last_ = world_->shard_thread()->Submit(
      [array](Communicator* ranks) { return ranks->AllGather(array); });
  return last_;
}

int64_t WorldShards::BeginReduceScatter(std::span<float> array) {
  last_ = world_->shard_thread()->Submit(
      [array](Communicator* ranks) { return ranks->ReduceScatter(array); });
  return last_;
}

// The collective does not move a rank's own block.
int64_t WorldShards::BeginAllToAll(std::span<float> array) {
  const size_t from = array.size() / 2, block = from / world_->size();
  const size_t own = block * world_->rank();
  std::ranges::copy(array.subspan(own, block), array.subspan(from + own).begin());
  last_ = world_->shard_thread()->Submit(
      [array](Communicator* ranks) { return ranks->AllToAll(array); });
  return last_;
}

void WorldShards::Wait(int64_t call) {
  if (!world_->lost()) (void)world_->WaitForShards(call);
}

void WorldShards::WaitForAll() { Wait(last_); }

}  // namespace ringtail
