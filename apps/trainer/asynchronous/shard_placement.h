// ShardPlacement: which rank serves which parameters, the same on all ranks, and by which channels.
//
//   3 ranks, servers: 0      shard 0 on rank 0   shard 1 on rank 1   shard 2 on rank 2
//   3 ranks, servers: 1      shard 0 on rank 0, all parameters
//
//   4 ranks, servers: 3, replicas: 1      copies of shard 1 on rank 2, of shard 2 on rank 3
//
// Every rank is a worker, too, unless servers are dedicated (worker_division.h). The first shard has
// the tickets and the running statistics; it has no replica, since rank 0 keeps the run.
// Thread-safety: immutable once made.
#ifndef RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SHARD_PLACEMENT_H_
#define RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SHARD_PLACEMENT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "apps/parameter_server/shard_layout.h"
#include "apps/run.pb.h"
#include "apps/trainer/training_world.h"
#include "core/parameter.h"
#include "dist/channel.h"
#include "dist/parameter_server/wire/push_coding.h"

namespace ringtail {

struct PlacedShard {
  int rank = 0;
  std::vector<size_t> parameters;  // of the model, ascending
  ShardLayout layout;
  Channel requests, replies;
  struct Replica {
    int rank = 0;
    Channel forwards, acknowledgements;  // from and to the server
    Channel requests, replies;           // of workers, once the server is dead
  };
  std::optional<Replica> replica;
  std::shared_ptr<const PushCoding> coding;  // of gradients; null: they travel as floats
};

// All ranks: takes two channels for each shard, and four for each replica. `layers`: the schemes of
// all parameters, which must outlive the result; empty: all gradients travel as floats.
std::vector<PlacedShard> PlaceShards(const RunConfig& config, const ParameterArena& model,
                                     std::span<const CompressedLayer> layers, TrainingWorld* world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SHARD_PLACEMENT_H_
