// WorldShards: lets the layers of a net that ranks divide among them exchange activations, over a
// world. A thread of the world sends and receives; waiting for it counts as waiting for others. If
// the world ends meanwhile, the pass continues with whatever the arrays hold, and its result is thrown
// away: waiting for the gradients returns the error.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_SHARDING_WORLD_SHARDS_H_
#define RINGTAIL_APPS_TRAINER_SHARDING_WORLD_SHARDS_H_

#include <cstdint>
#include <span>

#include "apps/trainer/training_world.h"
#include "layers/linear/shard_exchange.h"

namespace ringtail {

class WorldShards : public ShardExchange {
 public:
  explicit WorldShards(TrainingWorld* world) : world_(world) {}  // with a shard_thread()
  int64_t BeginAllGather(std::span<float> array) override;
  int64_t BeginReduceScatter(std::span<float> array) override;
  int64_t BeginAllToAll(std::span<float> array) override;
  void Wait(int64_t call) override;
  void WaitForAll() override;

 private:
  TrainingWorld* const world_;
  int64_t last_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_SHARDING_WORLD_SHARDS_H_
