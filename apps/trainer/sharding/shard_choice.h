// Which linear layers ranks divide among them (dist.model_parallel), and what that saves.
//
// A rank with N images, K inputs and M outputs sends in a step, f32 (layers/linear/sharded_linear.h)
//   divided    2 (P - 1) N (K + M / P)      activations and their gradients
//   whole      2 (P - 1) / P (M K + M)      the gradient of the weights, by a ring
// AUTO divides the layers where the first is less: large layers, small batches, few ranks. ALL divides
// each that has at least as many outputs as there are ranks. Frozen layers send nothing, and stay whole.
// Thread-safety: functions without state. Errors: those of the model; InvalidArgument, at the field,
// for layers that cannot be divided, or an optimizer that needs whole matrices.
#ifndef RINGTAIL_APPS_TRAINER_SHARDING_SHARD_CHOICE_H_
#define RINGTAIL_APPS_TRAINER_SHARDING_SHARD_CHOICE_H_

#include <cstdint>
#include <string>

#include "apps/config/run_config.h"
#include "core/status.h"
#include "layers/net/model.h"

namespace ringtail {

struct ShardChoice {
  ShardRequest request;        // without layers nothing is divided
  int64_t divided_bytes = 0;   // sent by each rank in a step for the layers of the request
  int64_t gradient_bytes = 0;  // what the gradients of these layers would be

  bool divides() const { return !request.layers.empty(); }
  // "classifier.1 and classifier.4 are divided among 4 ranks: 11.2 MB from each and step in place
  // of 327.3"; empty: nothing is divided.
  std::string Describe() const;
};

// For a rank with train.batch images; the same layers on every rank.
StatusOr<ShardChoice> ChooseShards(const LoadedConfig& loaded, int rank, int ranks);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_SHARDING_SHARD_CHOICE_H_
