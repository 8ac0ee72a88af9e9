#include "layers/linear/sharded_linear.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/parallel_for.h"
#include "layers/activations/activation_gradient.h"
#include "layers/parallel_blobs.h"
#include "layers/scratch_layout.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

// (rows, columns) between matrices whose rows lie `from_stride` and `to_stride` floats apart.
void CopyRows(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
              int64_t to_stride) {
  ParallelFor(rows, Grain(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      std::copy_n(from + row * from_stride, columns, to + row * to_stride);
    }
  });
}

}  // namespace

ShardedLinearLayer::ShardedLinearLayer(const LinearConfig& config, const LinearShard& shard)
    : config_(config), shard_(shard), whole_(config) {}

StatusOr<ShapeInfo> ShardedLinearLayer::InferShape(std::span<const BlobDesc> src) {
  auto info = whole_.InferShape(src);
  if (!info.ok()) {
    return whole_.failed_field().empty()
               ? info.status()
               : fields().Error(whole_.failed_field(), info.status().message());
  }
  dst_ = info->dst;
  M_ = dst_.C;
  if (M_ < shard_.ranks) {
    return fields().Error(
        "out_features",
        fmt::format("out_features is {}; {} ranks cannot divide it among them", M_, shard_.ranks));
  }
  own_ = shard_.count(M_);
  for (ParameterRequest& request : info->parameters) {
    request.spec.shard = {.first = shard_.first(M_), .whole = M_};
    request.spec.shape[0] = own_;
  }
  info->forward_flops *= static_cast<double>(shard_.ranks * own_) / static_cast<double>(M_);
  return info;
}

bool ShardedLinearLayer::FuseActivation(Activation activation) {
  const bool fuses = whole_.FuseActivation(activation);
  if (fuses) activation_ = activation;
  return fuses;
}

StatusOr<LayerPlan> ShardedLinearLayer::Setup(const SetupArgs& args) {
  RequireF32(args.src);
  src_rows_ = PlainRows(args.src[0]);
  N_ = src_rows_.N();
  K_ = src_rows_.K();
  training_ = args.training;
  pieces_ = training_ ? shard_.pieces : 1;
  if (N_ % pieces_ != 0) {
    return InvalidArgument(
        fmt::format("a rank computes {} images at once, which cannot travel in {} pieces; set "
                    "dist.model_parallel.pieces to a number that divides them",
                    N_, pieces_));
  }
  arrivals_.resize(pieces_);
  weight_ = args.parameters[0];
  bias_ = config_.bias() ? args.parameters[1] : nullptr;
  const auto products = [&](int64_t samples) {
    return LinearProducts::Create({.N = samples, .K = K_, .M = own_}, BlobType::kF32,
                                  OperandType(args));
  };
  piece_ = products(piece_rows());
  batch_ = products(pieces_ * piece_rows());

  const int64_t all_rows = pieces_ * piece_rows();
  ScratchLayout state, scratch;
  gathered_ = (training_ ? state : scratch).Add<float>(all_rows * K_);
  plain_ = scratch.AddBytes(src_rows_.copied_bytes());
  blocks_ = scratch.Add<float>(2 * all_rows * shard_.most(M_));
  slices_ = scratch.Add<float>(all_rows * own_);
  parts_ = scratch.Add<float>(training_ && args.needs_diff_src[0] ? all_rows * K_ : 0);
  multiply_ = scratch.AddBytes(std::max(piece_->scratch_bytes(), batch_->scratch_bytes()));
  return LayerPlan{.dst = dst_,
                   .state_bytes = state.bytes(),
                   .scratch_bytes = scratch.bytes(),
                   .backward_needs_dst = activation_ != Activation::kNone};
}

std::span<float> ShardedLinearLayer::Gathered(std::byte* state, std::byte* scratch,
                                              int64_t piece) const {
  const int64_t floats = piece_rows() * K_;
  float* const all = ArrayAt<float>(training_ ? state : scratch, gathered_);
  return {all + piece * floats, static_cast<size_t>(floats)};
}

ShardedLinearLayer::Blocks ShardedLinearLayer::BlocksOf(std::byte* scratch, int64_t piece) const {
  const int64_t block = rows() * shard_.most(M_), floats = 2 * shard_.ranks * block;
  float* const all = ArrayAt<float>(scratch, blocks_);
  return {.all = {all + piece * floats, static_cast<size_t>(floats)},
          .floats = block,
          .ranks = shard_.ranks};
}

float* ShardedLinearLayer::SliceOf(std::byte* scratch, int64_t piece) const {
  return ArrayAt<float>(scratch, slices_) + piece * piece_rows() * own_;
}

std::span<float> ShardedLinearLayer::PartsOf(std::byte* scratch, int64_t piece) const {
  const int64_t floats = piece_rows() * K_;
  return {ArrayAt<float>(scratch, parts_) + piece * floats, static_cast<size_t>(floats)};
}

void ShardedLinearLayer::Forward(const ForwardArgs& args) {
  ShardExchange* const ranks = args.step->shards;
  RT_CHECK(ranks != nullptr, "a sharded layer runs on all ranks together");
  const float* src = src_rows_.Read(args.src[0], ArrayAt<float>(args.scratch, plain_));
  const auto gather = [&](int64_t piece) {
    const std::span<float> all = Gathered(args.state, args.scratch, piece);
    const int64_t floats = rows() * K_;
    std::copy_n(src + piece * floats, floats, all.data() + shard_.rank * floats);
    return ranks->BeginAllGather(all);
  };
  int64_t gathering = gather(0), returning = 0;
  for (int64_t piece = 0; piece < pieces_; ++piece) {
    const int64_t here = gathering;
    if (piece + 1 < pieces_) gathering = gather(piece + 1);
    ranks->Wait(here);
    MultiplyPiece(args, piece);
    returning = ranks->BeginAllToAll(BlocksOf(args.scratch, piece).all);
  }
  ranks->Wait(returning);
  FinishForward(args);
}

// The own outputs for the samples of all ranks, each rank's in its block.
void ShardedLinearLayer::MultiplyPiece(const ForwardArgs& args, int64_t piece) const {
  float* const slice = SliceOf(args.scratch, piece);
  piece_->Forward(Gathered(args.state, args.scratch, piece).data(),
                  {.weight = weight_->value().data(),
                   .bias = bias_ != nullptr ? bias_->value().data() : nullptr},
                  activation_, slice, args.scratch + multiply_);
  const Blocks blocks = BlocksOf(args.scratch, piece);
  for (int rank = 0; rank < shard_.ranks; ++rank) {
    std::copy_n(slice + rank * rows() * own_, rows() * own_, blocks.To(rank));
  }
}

// The outputs of all ranks for this rank's samples, side by side.
void ShardedLinearLayer::FinishForward(const ForwardArgs& args) const {
  for (int64_t piece = 0; piece < pieces_; ++piece) {
    const Blocks blocks = BlocksOf(args.scratch, piece);
    float* const dst = args.dst + piece * rows() * M_;
    for (int rank = 0; rank < shard_.ranks; ++rank) {
      const int64_t outputs = shard_.Count(M_, rank);
      CopyRows(blocks.From(rank), outputs, rows(), outputs, dst + shard_.First(M_, rank), M_);
    }
  }
}

void ShardedLinearLayer::Backward(const BackwardArgs& args) {
  ShardExchange* const ranks = args.step->shards;
  ApplyActivationGradient(activation_, dst_, args.dst, args.diff_dst);
  for (int64_t piece = 0; piece < pieces_; ++piece) {
    const Blocks blocks = BlocksOf(args.scratch, piece);
    PackGradient(args.diff_dst, blocks, piece);
    arrivals_[piece] = ranks->BeginAllToAll(blocks.all);
  }
  BackwardData(args);

  // Meanwhile the last parts travel.
  const float* const slices = SliceOf(args.scratch, 0);
  batch_->BackwardWeights(Gathered(args.state, args.scratch, 0).data(), slices,
                          weight_->grad().data(), args.scratch + multiply_);
  if (bias_ != nullptr) batch_->BackwardBias(slices, bias_->grad().data());
  if (args.diff_src[0] != nullptr) WriteGradient(args);
}

// For each piece, once it has arrived: the gradient of src through the own outputs.
void ShardedLinearLayer::BackwardData(const BackwardArgs& args) const {
  ShardExchange* const ranks = args.step->shards;
  for (int64_t piece = 0; piece < pieces_; ++piece) {
    ranks->Wait(arrivals_[piece]);
    float* const slice = SliceOf(args.scratch, piece);
    UnpackGradient(BlocksOf(args.scratch, piece), slice);
    if (args.diff_src[0] == nullptr) continue;
    const std::span<float> parts = PartsOf(args.scratch, piece);
    piece_->BackwardData(slice, weight_->value().data(), parts.data(), args.scratch + multiply_);
    ranks->BeginReduceScatter(parts);
  }
}

void ShardedLinearLayer::PackGradient(const float* diff_dst, const Blocks& blocks,
                                      int64_t piece) const {
  for (int rank = 0; rank < shard_.ranks; ++rank) {
    const int64_t outputs = shard_.Count(M_, rank);
    CopyRows(diff_dst + piece * rows() * M_ + shard_.First(M_, rank), M_, rows(), outputs,
             blocks.To(rank), outputs);
  }
}

void ShardedLinearLayer::UnpackGradient(const Blocks& blocks, float* slice) const {
  for (int rank = 0; rank < shard_.ranks; ++rank) {
    std::copy_n(blocks.From(rank), rows() * own_, slice + rank * rows() * own_);
  }
}

void ShardedLinearLayer::WriteGradient(const BackwardArgs& args) const {
  args.step->shards->WaitForAll();
  float* const rows_of_blob =
      src_rows_.is_plain() ? args.diff_src[0] : ArrayAt<float>(args.scratch, plain_);
  const int64_t floats = rows() * K_;
  for (int64_t piece = 0; piece < pieces_; ++piece) {
    std::copy_n(PartsOf(args.scratch, piece).data() + shard_.rank * floats, floats,
                rows_of_blob + piece * floats);
  }
  src_rows_.Write(rows_of_blob, args.diff_src[0]);
}

std::string ShardedLinearLayer::Implementation() const {
  return piece_ == nullptr ? std::string()
                           : fmt::format("{}, outputs {} to {} of {}", piece_->name(),
                                         shard_.first(M_), shard_.first(M_) + own_ - 1, M_);
}

}  // namespace ringtail
