// What a checkpoint holds of compression: gradients that have not been sent yet, and what schemes
// know of earlier steps. What a rank has of its own is a part (core/storage/checkpoint_parts.h) that it
// writes and reads by itself; what is the same on all is in the checkpoint:
//
//   compression.unsent.0 .. compression.unsent.3   what each of 4 ranks has not sent: in part 0 .. 3
//   compression.dense_momentum                     the same on all: in the checkpoint
//
// (One rank alone has no parts, and older checkpoints have everything in one file.)
//
// A world of another size takes the same file: what old rank r has not sent becomes part of new rank
// r mod N's, so that what is still to be sent by all together stays the same.
//
// (So does what a rank has not sent of the sums that it made for all, for rank 0.)
//
//   4 ranks  [e0][e1][e2][e3]   -->   3 ranks  [e0+e3][e1][e2]   -->   5 ranks  [..][..][..][0][0]
//
// Thread-safety: the trainer thread, while no bucket is under way.
#ifndef RINGTAIL_DIST_COMPRESSION_COMPRESSION_STATE_H_
#define RINGTAIL_DIST_COMPRESSION_COMPRESSION_STATE_H_

#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/status.h"
#include "core/storage/safetensors.h"
#include "dist/communicator.h"
#include "dist/compression/gradient_compressor.h"

namespace ringtail {

class CompressionState {
 public:
  // Views of what is the same on all ranks, and of what is this rank's own.
  static std::vector<TensorView> Shared(GradientCompressor* compressor);
  static std::vector<TensorView> Own(GradientCompressor* compressor, int rank);

  // Takes over what a checkpoint has; DataLoss if it has a NaN or infinity.
  static StatusOr<CompressionState> Read(const SafetensorsFile& file);
  // Gives every rank its part of what rank 0 has read. Every rank calls it. Blocks that are not
  // there start from zero. FailedPrecondition if they do not fit the network.
  Status Distribute(Communicator* ranks, GradientCompressor* compressor) const;

  // Which parts of a world of `saved_world` ranks a rank has to have.
  static bool Needs(int rank, int world, int from, int saved_world);
  // Adds what this rank is to have of old rank `from`'s part, after Distribute. DataLoss if there
  // is a NaN or infinity.
  static Status AddPart(const SafetensorsFile& part, int from, int saved_world, int rank, int world,
                        GradientCompressor* compressor);

  bool empty() const { return blocks_.empty(); }

 private:
  struct Block {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  Status DistributeOwn(Communicator* ranks, const GradientCompressor::StateBlock& block) const;
  int SavedWorld() const;  // how many ranks' blocks have been read
  bool HasOwn() const;     // whether any
  // What rank `rank` of `world` is to have of a block.
  Status Collect(const std::string& name, int rank, int world, std::span<float> values) const;

  std::vector<Block> blocks_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_COMPRESSION_STATE_H_
