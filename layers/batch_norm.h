// Batch normalisation, with ReLU or ReLU6 fused (Ioffe & Szegedy 2015, algorithms 1 and 2).
//   src (N, C, H, W) -> dst (N, C, H, W), layout of src; per channel over the M = N H W values:
//   dst = act((src - mean) * inv_std * weight + bias),  inv_std = 1 / sqrt(variance + epsilon)
// Training uses the batch's mean and (biased) variance, and moves the running statistics:
//   running = (1 - momentum) running + momentum batch, the variance unbiased: M / (M - 1).
// Evaluation uses the running statistics. Backward, with g = act'(dst) diff_dst:
//   diff_bias = sum g,  diff_weight = inv_std sum g (src - mean)
//   diff_src = weight inv_std (g - diff_bias / M - (src - mean) inv_std diff_weight / M)
// The mask of the activation is computed again from src, so that dst is not kept.
// Synchronised (StepContext::ranks): M, moments and sums are those of the batch of all ranks, in one
// exchange of 2 C + 1 numbers for each direction (Peng et al. 2018, "MegDet"); diff_weight and
// diff_bias stay this rank's, to be added up like every gradient.
// Parameters: weight, bias (C); buffers running_mean, running_var (C).
// State: mean, inv_std, scale and bias of the map that they make (DstAffine), slope and offset of
// the gradient's (DiffSrcMap). Scratch: sums per (sample, channel), and per channel. Sums are taken
// per (sample, channel block) in float pieces, and added over samples in double in a fixed order: the same bits
// for any number of threads. Where the layer before took the moments, or the one behind the sums of
// backward (layers/moments.h), those are added.
// Errors: N H W = 1 in training. Cost: forward reads src twice and writes dst once; with moments
// from before it reads it once less, and deferred as well. Backward reads src and diff_dst twice
// and writes diff_src once; with sums from behind it reads both once less, and where diff_src is
// taken as a map as well. Memory-bound.
#ifndef RINGTAIL_LAYERS_BATCH_NORM_H_
#define RINGTAIL_LAYERS_BATCH_NORM_H_

#include <string>

#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

class BatchNormLayer : public Layer {
 public:
  explicit BatchNormLayer(const BatchNormConfig& config);

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool FuseActivation(Activation activation) override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  void Recompute(const ForwardArgs& args) override;
  ChannelAffine DstAffine(const std::byte* state) const override;
  bool normalizes() const override { return true; }
  ChannelGradient DiffSrcMap(const float* src, const std::byte* state) const override;
  std::string Implementation() const override;

 private:
  struct Work;  // the arrays of one call, laid out in state and scratch
  Work MakeWork(std::byte* state, std::byte* scratch) const;
  size_t StateBytes() const;
  size_t ScratchBytes() const;
  int64_t channels() const { return view_.channel_blocks() * view_.block; }  // with padding
  double count() const { return static_cast<double>(view_.N * view_.plane()); }
  int64_t Offset(int64_t n, int64_t block) const;

  void UseRunningStatistics(const Work& work) const;
  void AddMoments(const Work& work, const BlobMoments& moments, int64_t channel_block) const;
  void UseBatchStatistics(const Work& work, double count, int64_t channel_block) const;
  void SetAffine(const Work& work, int64_t channel_block) const;
  double SumMoments(const Work& work, RankSum* ranks) const;
  double SumGradients(const Work& work, RankSum* ranks) const;
  void SetGradientMap(const Work& work, double count, int64_t channel_block) const;
  void AddGradientSums(const Work& work, const BlobGradientSums& sums, int64_t channel_block) const;
  void Apply(const ForwardArgs& args, int64_t n, int64_t channel_block) const;
  template <typename Sum, typename Combine, typename Map>
  void SumCombineMap(const Sum& sum, const Combine& combine, const Map& map) const;
  template <typename Sum, typename Total, typename Exchange, typename Finish, typename Map>
  void InTwoPasses(RankSum* ranks, const Sum& sum, const Total& total, const Exchange& exchange,
                   const Finish& finish, const Map& map) const;

  const BatchNormConfig config_;
  Activation activation_ = Activation::kNone;
  // Of src; vectors (N, C) of whole blocks are seen as blocked, which is the same memory.
  BlobDesc view_;
  const Parameter *weight_ = nullptr, *bias_ = nullptr;
  const Parameter *running_mean_ = nullptr, *running_var_ = nullptr;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_BATCH_NORM_H_
