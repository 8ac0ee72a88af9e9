// LayerMemories: what compression keeps between steps, for all layers of one rank.
//
//   block                                                                      differs by rank
//   residual          what this rank has not sent of its gradients             yes
//   residual of sums  the same of the sums that it makes for all ranks         yes
//   momentum          velocity of layers with MemoryKind::kMomentum            yes
//   dense momentum    velocity of the summed gradients of all other layers     no
//
// in blocks of the gradients' layout, which exist only if a layer needs them; and over them one
// memory per layer (gradient_memory.h).
// Thread-safety: one thread at a time. Memory: the gradients' size for each block.
#ifndef RINGTAIL_DIST_COMPRESSION_MEMORY_LAYER_MEMORIES_H_
#define RINGTAIL_DIST_COMPRESSION_MEMORY_LAYER_MEMORIES_H_

#include <memory>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parameter.h"
#include "dist/compression/layer_scheme.h"
#include "dist/compression/memory/gradient_memory.h"
#include "dist/compression/memory/momentum_memory.h"
#include "dist/compression/state_block.h"

namespace ringtail {

struct LayerMemoryOptions {
  int rank = 0, world = 1;
  // The optimizer has no momentum, because a scheme keeps it: layers of other schemes get theirs
  // here, and so do all layers if none has such a scheme.
  bool keeps_momentum = false;
  MomentumMemoryOptions momentum;  // max_norm: of layers with MemoryKind::kMomentum alone
  // State is to be filled from a checkpoint, which may have residuals of layers that keep none now.
  bool carries_over = false;
};

class LayerMemories {
 public:
  // `layers`: one per parameter of the arena. `arena` must outlive it.
  LayerMemories(const ParameterArena* arena, std::span<const CompressedLayer> layers,
                const LayerMemoryOptions& options);

  // Of parameter i; null where its scheme needs none.
  CodecMemory* of_codec(size_t i) const { return memories_[i].codec.get(); }
  CodecMemory* of_sum(size_t i) const { return memories_[i].sum.get(); }  // sharded layers
  SketchMemory* of_sketch(size_t i) const { return memories_[i].sketch.get(); }

  // Slices of the blocks; empty where there is no such block.
  std::span<float> residual(size_t i) const { return Slice(residual_, i); }
  std::span<float> momentum(size_t i) const { return Slice(momentum_, i); }
  std::span<float> dense_momentum(size_t i) const { return Slice(dense_momentum_, i); }
  bool keeps_momentum() const { return options_.keeps_momentum; }

  // Replaces the summed gradient of parameter i by what momentum SGD applies, unless its scheme
  // keeps momentum itself.
  void ApplyDenseMomentum(size_t i);

  std::vector<StateBlock> state() const;

 private:
  struct Memory {
    MemoryKind kind = MemoryKind::kNone;
    std::unique_ptr<CodecMemory> codec, sum;
    std::unique_ptr<SketchMemory> sketch;
  };
  void MakeBlocks(std::span<const CompressedLayer> layers);
  Memory MakeMemory(const CompressedLayer& layer, size_t i) const;
  std::span<float> Slice(const AlignedBuffer& block, size_t i) const;

  const ParameterArena* const arena_;
  const LayerMemoryOptions options_;
  AlignedBuffer residual_, residual_of_sums_, momentum_, dense_momentum_;
  std::vector<Memory> memories_;  // by parameter
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_MEMORY_LAYER_MEMORIES_H_
