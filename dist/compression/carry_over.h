// CarryOver: residuals and momentum of a checkpoint, in a run that may compress other layers, or
// with another number of ranks, than the run that wrote it.
//
//   residual of a layer that sends everything now      added to the layer's next sum
//   momentum of a layer whose scheme keeps none now    its sum over ranks -> dense momentum
//   dense momentum of a layer whose scheme keeps it    -> momentum of rank 0
//
// Thread-safety: Start on one thread while no bucket is under way; AddResiduals on the
// communication thread.
#ifndef RINGTAIL_DIST_COMPRESSION_CARRY_OVER_H_
#define RINGTAIL_DIST_COMPRESSION_CARRY_OVER_H_

#include <span>
#include <vector>

#include "core/parameter.h"
#include "core/status.h"
#include "dist/communicator.h"
#include "dist/compression/layer_scheme.h"
#include "dist/compression/memory/layer_memories.h"

namespace ringtail {

class CarryOver {
 public:
  // All of them must outlive it.
  CarryOver(const ParameterArena* arena, std::span<const CompressedLayer> layers,
            LayerMemories* memories)
      : arena_(arena), layers_(layers), memories_(memories), pending_(layers.size()) {}

  // After the state was filled. All ranks.
  Status Start(Communicator* ranks);
  // After the gradients of `parameters` were summed: adds the residuals of all ranks that are still
  // pending, once.
  Status AddResiduals(Communicator* ranks, std::span<const size_t> parameters);

 private:
  using Slice = std::span<float> (LayerMemories::*)(size_t) const;
  // Whether any rank has something in the slice of a layer that keeps no memory now; by parameter.
  StatusOr<std::vector<bool>> Orphaned(Communicator* ranks, Slice slice) const;
  Status MoveMomentum(Communicator* ranks);

  const ParameterArena* const arena_;
  const std::span<const CompressedLayer> layers_;
  LayerMemories* const memories_;
  std::vector<bool> pending_;  // by parameter
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CARRY_OVER_H_
