#include "layers/batch_norm.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "layers/element_types/blob_elements.h"
#include "layers/kernels/batch_norm.h"
#include "layers/parallel_blobs.h"
#include "layers/scratch_layout.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

using PerChannel = std::array<double, 16>;  // of one channel block, the largest

// Vectors (N, C) of whole blocks are seen as blocked, which is the same memory.
BlobDesc BestView(BlobDesc desc) {
  if (desc.block != 1 || desc.plane() != 1) return desc;
  for (const int64_t block : {16, 8}) {
    if (desc.C % block == 0) {
      desc.block = block;
      break;
    }
  }
  return desc;
}

// The share of a batch in the running statistics after so many steps of it.
double MomentumOf(double momentum, int64_t steps) {
  return steps == 1 ? momentum : 1 - std::pow(1 - momentum, static_cast<double>(steps));
}

}  // namespace

struct BatchNormLayer::Work {
  float *mean, *scale, *bias, *slope, *offset, *inv_std;  // (C) with padding, in state
  double *first, *second;              // (N, C): mean and m2, or the two gradient sums
  double *total_first, *total_second;  // (C): the same over all samples; then room for one number
};

BatchNormLayer::BatchNormLayer(const BatchNormConfig& config) : config_(config) {}

StatusOr<ShapeInfo> BatchNormLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  RT_RETURN_IF_ERROR(CheckBlobSize(src[0]));
  RT_RETURN_IF_ERROR(fields().Positive("epsilon", config_.epsilon()));
  RT_RETURN_IF_ERROR(fields().Fraction("momentum", config_.momentum()));
  using Fallback = ParameterRequest::Fallback;
  const auto request = [&](const char* name, Fallback fallback, bool is_buffer) {
    return ParameterRequest{.spec = {name, {src[0].C}, ParameterKind::kVector},
                            .is_buffer = is_buffer,
                            .init = nullptr,
                            .fallback_init = fallback};
  };
  ShapeInfo info{.dst = src[0], .parameters = {}};
  info.parameters.push_back(request("weight", Fallback::kOne, false));
  if (config_.has_weight_init()) info.parameters.back().init = &config_.weight_init();
  info.parameters.back().init_field = "weight_init";
  info.parameters.push_back(request("bias", Fallback::kZero, false));
  info.parameters.push_back(request("running_mean", Fallback::kZero, true));
  info.parameters.push_back(request("running_var", Fallback::kOne, true));
  return info;
}

bool BatchNormLayer::FuseActivation(Activation activation) {
  return FuseOnce(activation, &activation_);
}

StatusOr<LayerPlan> BatchNormLayer::Setup(const SetupArgs& args) {
  view_ = BestView(args.src[0]);
  if (args.training && view_.N * view_.plane() == 1) {
    return InvalidArgument(fmt::format(
        "batch norm needs more than one value per channel to train, and its input is {}; use a "
        "larger batch or larger images",
        view_.ShapeString()));
  }
  weight_ = args.parameters[0];
  bias_ = args.parameters[1];
  running_mean_ = args.parameters[2];
  running_var_ = args.parameters[3];
  ScratchLayout state, scratch;
  for (size_t& offset : state_) offset = state.Add<float>(channels());
  first_ = scratch.Add<double>(view_.N * channels());
  second_ = scratch.Add<double>(view_.N * channels());
  totals_ = scratch.Add<double>(2 * channels() + 1);
  LayerPlan plan{.dst = args.src[0],
                 .state_bytes = state.bytes(),
                 .scratch_bytes = scratch.bytes(),
                 .backward_needs_src = true,
                 .forward_in_place = !args.training,
                 .backward_in_place = true,
                 .recomputable = true};
  plan.fusion.dst_is_affine = true;
  return plan;
}

void BatchNormLayer::Forward(const ForwardArgs& args) {
  ForElementOf(view_.type, [&](auto element) { ForwardOn<decltype(element)>(args); });
}

template <typename Element>
void BatchNormLayer::ForwardOn(const ForwardArgs& args) {
  const Element* src = ElementsOf<Element>(args.src[0]);
  const Work work = MakeWork(args.state, args.scratch);
  if (!args.step->training) {
    UseRunningStatistics(work);
    return Recompute(args);
  }
  const BlobMoments own = {{view_.plane()}, work.first, work.second};
  const BlobMoments& moments = args.fusion.src_moments ? args.fusion.src_moments : own;
  const auto take = RT_KERNEL(BatchNormMoments<Element>);
  const auto sum = [&](int64_t n, int64_t b) {
    if (args.fusion.src_moments) return;
    const int64_t at = own.At(view_, n, 0, b);
    take(src + Offset(n, b), view_.plane(), view_.block, own.mean + at, own.m2 + at);
  };
  const double momentum = MomentumOf(config_.momentum(), args.step->statistics_steps);
  InTwoPasses(
      args.step->ranks, sum, [&](int64_t b) { AddMoments(work, moments, b); },
      [&] { return SumMoments(work, args.step->ranks); },
      [&](double M, int64_t b) { UseBatchStatistics(work, M, momentum, b); },
      [&](int64_t n, int64_t b) { Apply<Element>(args, n, b); });
}

// The statistics are in the state: only the map is applied.
void BatchNormLayer::Recompute(const ForwardArgs& args) {
  ForElementOf(view_.type, [&](auto element) {
    SumCombineMap([](int64_t, int64_t) {}, [](int64_t) {},
                  [&](int64_t n, int64_t b) { Apply<decltype(element)>(args, n, b); });
  });
}

void BatchNormLayer::Backward(const BackwardArgs& args) {
  ForElementOf(view_.type, [&](auto element) { BackwardOn<decltype(element)>(args); });
}

template <typename Element>
void BatchNormLayer::BackwardOn(const BackwardArgs& args) {
  const Element* src = ElementsOf<Element>(args.src[0]);
  const Element* diff_dst = ElementsOf<Element>(args.diff_dst);
  auto* diff_src = ElementsOf<Element>(args.diff_src[0]);
  const Work work = MakeWork(args.state, args.scratch);
  const int64_t plane = view_.plane(), block = view_.block;
  const ChannelAffine affine = DstAffine(args.state);
  const BlobGradientSums own = {{plane}, work.first, work.second};
  const BlobGradientSums& sums = args.fusion.diff_dst_sums ? args.fusion.diff_dst_sums : own;
  const auto add = RT_KERNEL(BatchNormGradientSums<Element>);
  const auto gradient = RT_KERNEL(BatchNormGradient<Element>);
  const auto sum = [&](int64_t n, int64_t b) {
    if (args.fusion.diff_dst_sums) return;
    const int64_t offset = Offset(n, b), at = own.At(view_, n, 0, b);
    add(src + offset, diff_dst + offset, plane, block, affine.From(b * block), own.g + at,
        own.gx + at);
  };
  const auto map = [&](int64_t n, int64_t b) {
    if (diff_src == nullptr) return;
    const int64_t offset = Offset(n, b);
    gradient(src + offset, diff_dst + offset, plane, block, affine.From(b * block),
             work.slope + b * block, work.offset + b * block, diff_src + offset);
  };
  InTwoPasses(
      args.step->ranks, sum, [&](int64_t b) { AddGradientSums(work, sums, b); },
      [&] { return SumGradients(work, args.step->ranks); },
      [&](double M, int64_t b) {
        if (args.step->training) return SetGradientMap(work, M, b);
        SetConstantStatisticsMap(work, b);
      },
      map);
}

std::string BatchNormLayer::Implementation() const { return KernelImplementation(); }

BatchNormLayer::Work BatchNormLayer::MakeWork(std::byte* state, std::byte* scratch) const {
  const auto channel_array = [&](StateArray array) { return ArrayAt<float>(state, state_[array]); };
  double* const totals = ArrayAt<double>(scratch, totals_);
  return {.mean = channel_array(kMean),
          .scale = channel_array(kScale),
          .bias = channel_array(kBias),
          .slope = channel_array(kSlope),
          .offset = channel_array(kOffset),
          .inv_std = channel_array(kInvStd),
          .first = ArrayAt<double>(scratch, first_),
          .second = ArrayAt<double>(scratch, second_),
          .total_first = totals,
          .total_second = totals + channels()};
}

const float* BatchNormLayer::Channels(const std::byte* state, StateArray array) const {
  return reinterpret_cast<const float*>(state + state_[array]);
}

ChannelAffine BatchNormLayer::DstAffine(const std::byte* state) const {
  return {.mean = Channels(state, kMean),
          .scale = Channels(state, kScale),
          .bias = Channels(state, kBias),
          .low = LowerBound(activation_),
          .high = UpperBound(activation_)};
}

ChannelGradient BatchNormLayer::DiffSrcMap(const float* src, const std::byte* state) const {
  return {.src = src,
          .affine = DstAffine(state),
          .slope = Channels(state, kSlope),
          .offset = Channels(state, kOffset)};
}

// The offset of sample n and channel block `block`, in elements.
int64_t BatchNormLayer::Offset(int64_t n, int64_t block) const {
  return (n * view_.channel_blocks() + block) * view_.plane() * view_.block;
}

// For all samples sum(n, channel block), then combine(channel block), then for all samples
// map(n, channel block). With enough channel blocks each thread takes whole ones, so that a block
// that fits the cache is read from memory once. The sums are the same either way.
template <typename Sum, typename Combine, typename Map>
void BatchNormLayer::SumCombineMap(const Sum& sum, const Combine& combine, const Map& map) const {
  constexpr int64_t kBlocksPerThread = 4;  // then an uneven split costs little
  const int64_t N = view_.N, blocks = view_.channel_blocks(), threads = NumComputeThreads();
  const int64_t item_floats = view_.plane() * view_.block;
  if (blocks % threads == 0 || blocks >= kBlocksPerThread * threads) {
    ParallelFor(blocks, Grain(N * item_floats), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        for (int64_t n = 0; n < N; ++n) sum(n, b);
        combine(b);
        // In reverse order: the last sample is still in the cache.
        for (int64_t n = N - 1; n >= 0; --n) map(n, b);
      }
    });
    return;
  }
  ParallelFor(N * blocks, Grain(item_floats), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum(i / blocks, i % blocks);
  });
  ParallelFor(blocks, Grain(N * view_.block), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) combine(b);
  });
  ParallelFor(N * blocks, Grain(item_floats), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) map(i / blocks, i % blocks);
  });
}

// sum, total(channel block), finish(M, channel block), map: in one pass, so that what fits the
// cache is read once; or, if ranks share a batch, in two passes with their exchange() in between.
template <typename Sum, typename Total, typename Exchange, typename Finish, typename Map>
void BatchNormLayer::InTwoPasses(RankSum* ranks, const Sum& sum, const Total& total,
                                 const Exchange& exchange, const Finish& finish,
                                 const Map& map) const {
  if (ranks == nullptr) {
    const auto combine = [&](int64_t b) {
      total(b);
      finish(count(), b);
    };
    return SumCombineMap(sum, combine, map);
  }
  SumCombineMap(sum, total, [](int64_t, int64_t) {});
  const double M = exchange();
  SumCombineMap([](int64_t, int64_t) {}, [&](int64_t b) { finish(M, b); }, map);
}

void BatchNormLayer::UseRunningStatistics(const Work& work) const {
  const std::span<const float> mean = running_mean_->value(), var = running_var_->value();
  for (int64_t c = 0; c < channels(); ++c) {
    work.mean[c] = c < view_.C ? mean[c] : 0;
    work.inv_std[c] = c < view_.C ? 1 / std::sqrt(var[c] + config_.epsilon()) : 0;
  }
  for (int64_t b = 0; b < view_.channel_blocks(); ++b) SetAffine(work, b);
}

// moments (N, parts, C) -> totals (C): mean and m2 of the parts combined, in double
// (Chan et al. 1979).
void BatchNormLayer::AddMoments(const Work& work, const BlobMoments& moments,
                                int64_t channel_block) const {
  const int64_t parts = moments.parts(view_);
  const auto for_each_part = [&](const auto& add) {
    for (int64_t i = 0; i < view_.N * parts; ++i) {
      const int64_t at = moments.At(view_, i / parts, i % parts, channel_block);
      const auto pixels = static_cast<double>(moments.PixelsOf(view_, i % parts));
      add(moments.mean + at, moments.m2 + at, pixels);
    }
  };
  PerChannel mean{}, m2{};
  for_each_part([&](const double* part, const double*, double pixels) {
    for (int64_t i = 0; i < view_.block; ++i) mean[i] += part[i] * pixels;
  });
  for (double& m : mean) m /= count();
  for_each_part([&](const double* part, const double* part_m2, double pixels) {
    for (int64_t i = 0; i < view_.block; ++i) {
      const double delta = part[i] - mean[i];
      m2[i] += part_m2[i] + delta * delta * pixels;
    }
  });
  std::copy_n(mean.begin(), view_.block, work.total_first + channel_block * view_.block);
  std::copy_n(m2.begin(), view_.block, work.total_second + channel_block * view_.block);
}

// Replaces this rank's mean and m2 by those of all ranks; returns their M. Means cannot be summed,
// nor m2 about different means, but sums of values and of their squares can.
double BatchNormLayer::SumMoments(const Work& work, RankSum* ranks) const {
  const int64_t C = channels();
  double *mean = work.total_first, *m2 = work.total_second, *M = work.total_second + C;
  *M = count();
  for (int64_t c = 0; c < C; ++c) {
    m2[c] += *M * mean[c] * mean[c];
    mean[c] *= *M;
  }
  ranks->Sum({work.total_first, static_cast<size_t>(2 * C + 1)});
  for (int64_t c = 0; c < C; ++c) {
    mean[c] /= *M;
    m2[c] = std::max(0.0, m2[c] - *M * mean[c] * mean[c]);
  }
  return *M;
}

void BatchNormLayer::UseBatchStatistics(const Work& work, double count, double momentum,
                                        int64_t channel_block) const {
  const std::span<float> running_mean = running_mean_->value(), running_var = running_var_->value();
  for (int64_t i = 0; i < view_.block; ++i) {
    const int64_t c = channel_block * view_.block + i;
    const double mean = work.total_first[c], m2 = work.total_second[c];
    work.mean[c] = static_cast<float>(mean);
    work.inv_std[c] = static_cast<float>(1 / std::sqrt(m2 / count + config_.epsilon()));
    if (c >= view_.C) continue;
    running_mean[c] = static_cast<float>((1 - momentum) * running_mean[c] + momentum * mean);
    running_var[c] =
        static_cast<float>((1 - momentum) * running_var[c] + momentum * m2 / (count - 1));
  }
  SetAffine(work, channel_block);
}

// The coefficients of dst (DstAffine) from inv_std and the parameters; padding channels map 0 to 0.
void BatchNormLayer::SetAffine(const Work& work, int64_t channel_block) const {
  const std::span<const float> weight = weight_->value(), bias = bias_->value();
  for (int64_t i = 0; i < view_.block; ++i) {
    const int64_t c = channel_block * view_.block + i;
    work.scale[c] = c < view_.C ? weight[c] * work.inv_std[c] : 0;
    work.bias[c] = c < view_.C ? bias[c] : 0;
  }
}

template <typename Element>
void BatchNormLayer::Apply(const ForwardArgs& args, int64_t n, int64_t channel_block) const {
  if (args.dst == nullptr) return;
  const int64_t offset = Offset(n, channel_block);
  RT_KERNEL(BatchNormApply<Element>, ElementsOf<Element>(args.src[0]) + offset, view_.plane(),
            view_.block, DstAffine(args.state).From(channel_block * view_.block),
            ElementsOf<Element>(args.dst) + offset);
}

// sums (N, parts, C) -> totals (C), and from them the gradients of the parameters.
void BatchNormLayer::AddGradientSums(const Work& work, const BlobGradientSums& sums,
                                     int64_t channel_block) const {
  const int64_t first = channel_block * view_.block, parts = sums.parts(view_);
  PerChannel sum_g{}, sum_gx{};
  for (int64_t part = 0; part < view_.N * parts; ++part) {
    const int64_t at = sums.At(view_, part / parts, part % parts, channel_block);
    for (int64_t i = 0; i < view_.block; ++i) {
      sum_g[i] += sums.g[at + i];
      sum_gx[i] += sums.gx[at + i];
    }
  }
  std::copy_n(sum_g.begin(), view_.block, work.total_first + first);
  std::copy_n(sum_gx.begin(), view_.block, work.total_second + first);
  const std::span<float> diff_weight = weight_->grad(), diff_bias = bias_->grad();
  for (int64_t c = first; c < std::min(first + view_.block, view_.C); ++c) {
    diff_weight[c] = static_cast<float>(work.inv_std[c] * sum_gx[c - first]);
    diff_bias[c] = static_cast<float>(sum_g[c - first]);
  }
}

// Replaces this rank's sums by those of all ranks; returns their M.
double BatchNormLayer::SumGradients(const Work& work, RankSum* ranks) const {
  double* const M = work.total_second + channels();
  *M = count();
  ranks->Sum({work.total_first, static_cast<size_t>(2 * channels() + 1)});
  return *M;
}

// The coefficients of diff_src (DiffSrcMap) from the totals.
void BatchNormLayer::SetGradientMap(const Work& work, double count, int64_t channel_block) const {
  const int64_t first = channel_block * view_.block;
  for (int64_t c = first; c < first + view_.block; ++c) {
    const double scale = work.scale[c], inv_std = work.inv_std[c];
    work.slope[c] = static_cast<float>(-scale * inv_std * inv_std * work.total_second[c] / count);
    work.offset[c] = static_cast<float>(-scale * work.total_first[c] / count);
  }
}

// The same where the statistics do not depend on src: diff_src = scale g.
void BatchNormLayer::SetConstantStatisticsMap(const Work& work, int64_t channel_block) const {
  const int64_t first = channel_block * view_.block;
  std::fill_n(work.slope + first, view_.block, 0.0F);
  std::fill_n(work.offset + first, view_.block, 0.0F);
}

}  // namespace ringtail
