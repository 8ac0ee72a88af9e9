// What a checkpoint holds of compression: residuals, which have not been sent yet, and what schemes
// remember of earlier steps. Blocks of a rank's own are a part (core/storage/checkpoint_parts.h)
// that the rank writes and reads itself; blocks that are the same on all ranks are in the
// checkpoint:
//
//   compression.unsent.0 .. compression.unsent.3   residuals of each of 4 ranks: in part 0 .. 3
//   compression.dense_momentum                     the same on all ranks: in the checkpoint
//
// (A world of one rank has no parts, and older checkpoints have everything in one file.)
//
// A world of another size reads the same file: the residual of old rank r is added to that of new
// rank r mod N, so that the sum over ranks, which is still to be sent, stays the same. The
// residuals of the sums that ranks make for all ranks go to rank 0.
//
//   4 ranks  [e0][e1][e2][e3]   -->   3 ranks  [e0+e3][e1][e2]   -->   5 ranks  [..][..][..][0][0]
//
// Thread-safety: the trainer thread, while no bucket is under way.
#ifndef RINGTAIL_DIST_COMPRESSION_COMPRESSION_STATE_H_
#define RINGTAIL_DIST_COMPRESSION_COMPRESSION_STATE_H_

#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/storage/safetensors_writer.h"
#include "dist/communicator.h"
#include "dist/compression/state_block.h"

namespace ringtail {

class CompressionState {
 public:
  // Views of the blocks that are the same on all ranks, and of this rank's own.
  static std::vector<TensorView> Shared(std::span<const StateBlock> blocks);
  static std::vector<TensorView> Own(std::span<const StateBlock> blocks, int rank);

  // Copies what a checkpoint has; DataLoss if it has a NaN or infinity.
  static StatusOr<CompressionState> Read(const SafetensorsFile& file);
  // Fills the blocks of every rank with its part of what `source_rank` has read. All ranks. Blocks
  // that are not in the checkpoint start from zero. FailedPrecondition if they do not fit the
  // network.
  Status Distribute(Communicator* ranks, int source_rank, std::span<const StateBlock> blocks) const;

  // Whether a rank needs part `from` of a world of `saved_world` ranks.
  static bool Needs(int rank, int world, int from, int saved_world);
  // After Distribute: adds to the blocks what this rank gets of old rank `from`'s part. DataLoss if
  // there is a NaN or infinity.
  static Status AddPart(const SafetensorsFile& part, int from, int saved_world, int rank, int world,
                        std::span<const StateBlock> blocks);

  bool empty() const { return blocks_.empty(); }

 private:
  struct Block {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  Status DistributeOwn(Communicator* ranks, int source_rank, const StateBlock& block) const;
  int SavedWorld() const;  // number of ranks whose own blocks have been read
  bool HasOwn() const;     // whether there are any
  // Sets `values` to what rank `rank` of `world` gets of a block.
  Status Collect(const std::string& name, int rank, int world, std::span<float> values) const;

  std::vector<Block> blocks_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_COMPRESSION_STATE_H_
