// Batch normalization, with ReLU or ReLU6 fused (Ioffe & Szegedy 2015, algorithms 1 and 2).
//   src (N, C, H, W) -> dst (N, C, H, W), layout of src; per channel over the M = N H W values:
//   dst = act((src - mean) * inv_std * weight + bias),  inv_std = 1 / sqrt(variance + epsilon)
// Training uses the batch's mean and (biased) variance, and moves the running statistics:
//   running = (1 - momentum) running + momentum batch, the variance unbiased: M / (M - 1);
//   of a batch that stands for k steps (StepContext::statistics_steps) with 1 - (1 - momentum)^k.
// Evaluation uses the running statistics. Backward, with g = act'(dst) diff_dst:
//   diff_bias = sum g,  diff_weight = inv_std sum g (src - mean)
//   diff_src = weight inv_std (g - diff_bias / M - (src - mean) inv_std diff_weight / M)
//   diff_src = weight inv_std g   after an evaluation, in which the statistics are constants
// The mask of the activation is computed again from src, so that dst is not kept.
// Synchronized (StepContext::ranks): M, moments and sums are those of the batch of all ranks, in
// one exchange of 2 C + 1 numbers for each direction (Peng et al. 2018, "MegDet"); diff_weight and
// diff_bias stay this rank's, to be summed like every gradient.
// Parameters: weight, bias (C); buffers running_mean, running_var (C).
// State: mean and inv_std; scale and bias of dst as a map of src (DstAffine); slope and offset of
// diff_src as a map of diff_dst (DiffSrcMap). Scratch: sums per (sample, channel), and per channel.
// Sums are taken per (sample, channel block) in float pieces, and added over samples in double in a
// fixed order: the same bits for any number of threads. If the previous layer took the moments, or
// the next one the sums of backward (layers/fusion.h), those are added instead.
// Errors: N H W = 1 in training; epsilon, momentum out of range (InferShape).
// Cost, memory-bound: forward reads src twice and writes dst once; one read less if the previous
// layer took the moments; one read and the write less if dst is deferred. Backward reads src and
// diff_dst twice and writes diff_src once; one read of each less if the next layer took the sums;
// one read of each and the write less if diff_src is left as a map.
#ifndef RINGTAIL_LAYERS_BATCH_NORM_H_
#define RINGTAIL_LAYERS_BATCH_NORM_H_

#include <array>
#include <string>

#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

class BatchNormLayer : public Layer, public FusedNormalization {
 public:
  explicit BatchNormLayer(const BatchNormConfig& config);

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool FuseActivation(Activation activation) override;
  bool RunsOn(std::span<const BlobType> src, BlobType dst) const override {
    return AllAre(src, dst);
  }
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  void Recompute(const ForwardArgs& args) override;
  const FusedNormalization* normalization() const override { return this; }
  ChannelAffine DstAffine(const std::byte* state) const override;
  ChannelGradient DiffSrcMap(const float* src, const std::byte* state) const override;
  std::string Implementation() const override;

 private:
  struct Work;  // the arrays of one call, laid out in state and scratch
  Work MakeWork(std::byte* state, std::byte* scratch) const;
  enum StateArray { kMean, kScale, kBias, kSlope, kOffset, kInvStd, kStateArrays };
  const float* Channels(const std::byte* state, StateArray array) const;
  int64_t channels() const { return view_.channel_blocks() * view_.block; }  // with padding
  double count() const { return static_cast<double>(view_.N * view_.plane()); }
  int64_t Offset(int64_t n, int64_t block) const;

  void UseRunningStatistics(const Work& work) const;
  void AddMoments(const Work& work, const BlobMoments& moments, int64_t channel_block) const;
  void UseBatchStatistics(const Work& work, double count, double momentum,
                          int64_t channel_block) const;
  void SetAffine(const Work& work, int64_t channel_block) const;
  double SumMoments(const Work& work, RankSum* ranks) const;
  double SumGradients(const Work& work, RankSum* ranks) const;
  void SetGradientMap(const Work& work, double count, int64_t channel_block) const;
  void SetConstantStatisticsMap(const Work& work, int64_t channel_block) const;
  void AddGradientSums(const Work& work, const BlobGradientSums& sums, int64_t channel_block) const;
  template <typename Element>
  void Apply(const ForwardArgs& args, int64_t n, int64_t channel_block) const;
  template <typename Element>
  void ForwardOn(const ForwardArgs& args);
  template <typename Element>
  void BackwardOn(const BackwardArgs& args);
  template <typename Sum, typename Combine, typename Map>
  void SumCombineMap(const Sum& sum, const Combine& combine, const Map& map) const;
  template <typename Sum, typename Total, typename Exchange, typename Finish, typename Map>
  void InTwoPasses(RankSum* ranks, const Sum& sum, const Total& total, const Exchange& exchange,
                   const Finish& finish, const Map& map) const;

  const BatchNormConfig config_;
  Activation activation_ = Activation::kNone;
  BlobDesc view_;                               // of src
  std::array<size_t, kStateArrays> state_{};    // offsets in state
  size_t first_ = 0, second_ = 0, totals_ = 0;  // offsets in scratch
  const Parameter *weight_ = nullptr, *bias_ = nullptr;
  const Parameter *running_mean_ = nullptr, *running_var_ = nullptr;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_BATCH_NORM_H_
