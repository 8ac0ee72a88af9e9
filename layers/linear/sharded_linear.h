// ShardedLinear: a linear layer whose outputs ranks divide among them. Every rank has some rows of
// the weight (LinearShard), and computes them for the samples of all ranks: activations travel, the
// weight and its gradient do not.
//
//   P ranks, N samples each, rank r holds M_r of M outputs
//
//   forward    src of all ranks (P N, K)   <- allgather of src (N, K)
//              slice (P N, M_r)             = src weight_r^T + bias_r
//              dst (N, M)                  <- all-to-all: the columns of all for this rank's samples
//   backward   diff slice (P N, M_r)       <- all-to-all of diff_dst (N, M)
//              part (P N, K)                = diff slice weight_r
//              diff_src (N, K)             <- reduce-scatter: the sum of all ranks' parts
//              diff_weight_r                = diff slice^T src, while that travels: the sum over the
//                                             samples of all ranks, as the optimizer wants it
//
// With several `pieces` each of these works on a part of every rank's rows, and the next piece
// travels while one is computed:
//
//   gather   [0][1]                     [0]..[C-1]: N / C rows of every rank
//   compute     [0][1]
//   return         [0][1]
//
// Source: Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks",
// section 4: with one piece scheme (a), all ranks send all their samples; with P pieces scheme (c),
// each piece has N / P samples of every rank. (His scheme (b), the samples of one rank at a time,
// takes as many bytes as (c), but one rank sends them all while the others only receive.)
// Bytes sent by a rank in a step: 2 (P - 1) N (K + M / P) floats; a gradient's allreduce would be
// 2 (P - 1) / P M K.
// All ranks have as many samples, and run the same passes with StepContext::shards.
// State: src of all ranks. Scratch: slices and parts. Cost: the FLOPs of the whole layer on the
// samples of one rank. Numerics: the gradient of src is a sum over ranks of sums over their outputs,
// that of the weight one over all samples: equal to the whole layer's but for rounding.
// Errors: those of LinearLayer; InvalidArgument if there are fewer outputs than ranks, or (from
// Setup, in training) if the samples cannot be divided into pieces.
#ifndef RINGTAIL_LAYERS_LINEAR_SHARDED_LINEAR_H_
#define RINGTAIL_LAYERS_LINEAR_SHARDED_LINEAR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "layers/linear/linear.h"
#include "layers/linear/linear_products.h"
#include "layers/linear/linear_shard.h"
#include "layers/linear/plain_rows.h"
#include "layers/linear/shard_exchange.h"

namespace ringtail {

class ShardedLinearLayer : public Layer {
 public:
  ShardedLinearLayer(const LinearConfig& config, const LinearShard& shard);

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool FuseActivation(Activation activation) override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;

 private:
  // Of a piece: where the blocks of an all-to-all begin, and what one block is.
  struct Blocks {
    std::span<float> all;  // one to each rank, then one from each
    int64_t floats = 0;    // of a block: room for the most outputs of a rank
    int ranks = 1;
    float* To(int rank) const { return all.data() + rank * floats; }
    float* From(int rank) const { return To(ranks + rank); }
  };
  int64_t rows() const { return N_ / pieces_; }  // of a rank in a piece
  int64_t piece_rows() const { return rows() * shard_.ranks; }
  std::span<float> Gathered(std::byte* state, std::byte* scratch, int64_t piece) const;
  Blocks BlocksOf(std::byte* scratch, int64_t piece) const;
  float* SliceOf(std::byte* scratch, int64_t piece) const;
  std::span<float> PartsOf(std::byte* scratch, int64_t piece) const;

  void MultiplyPiece(const ForwardArgs& args, int64_t piece) const;
  void FinishForward(const ForwardArgs& args) const;
  void PackGradient(const float* diff_dst, const Blocks& blocks, int64_t piece) const;
  void UnpackGradient(const Blocks& blocks, float* slice) const;
  void BackwardData(const BackwardArgs& args) const;
  void WriteGradient(const BackwardArgs& args) const;

  const LinearConfig config_;
  const LinearShard shard_;
  LinearLayer whole_;  // for shapes alone
  Activation activation_ = Activation::kNone;
  BlobDesc dst_;
  PlainRows src_rows_;
  int64_t N_ = 0, K_ = 0, M_ = 0, own_ = 0;  // own_: M_r
  int64_t pieces_ = 1;
  std::unique_ptr<const LinearProducts> piece_;  // of (piece_rows, K) and the own outputs
  std::unique_ptr<const LinearProducts> batch_;  // of all pieces
  bool training_ = false;
  // Offsets: in state, or in scratch if it does not learn.
  size_t gathered_ = 0;  // pieces x ranks x rows x K
  // In scratch.
  size_t plain_ = 0;               // (N, K): src, then diff_src, where the blob is in blocks
  size_t blocks_ = 0;              // pieces x 2 ranks x rows x most outputs
  size_t slices_ = 0;              // pieces x piece_rows x M_r
  size_t parts_ = 0;               // pieces x piece_rows x K
  size_t multiply_ = 0;            // of the products
  std::vector<int64_t> arrivals_;  // calls of a backward, by piece
  const Parameter* weight_ = nullptr;
  const Parameter* bias_ = nullptr;  // null: no bias
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_SHARDED_LINEAR_H_
