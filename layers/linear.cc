#include "layers/linear.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/activations/activation_gradient.h"
#include "layers/kernels/linear/linear.h"
#include "layers/kernels/linear/linear_few.h"
#include "layers/kernels/linear/linear_multiply.h"
#include "layers/parallel_blobs.h"
#include "layers/relayout.h"
#include "layers/scratch_layout.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

constexpr int64_t kLineFloats = 16;  // 64 bytes
// Up to so many samples or outputs, reading the weights takes longer than multiplying with them.
constexpr int64_t kFew = 8;
// Larger gradients have left the caches when the optimizer reads them.
constexpr int64_t kStreamFloats = (16 << 20) / sizeof(float);
// Multiply-adds below which a thread costs more than it saves.
constexpr int64_t kGrainProducts = 1 << 16;

// Splits 0 .. count - 1 at multiples of `unit` and calls fn(part, begin, end) for each part, in
// parallel. Each of count takes `products` multiply-adds.
template <typename Function>
void ForEachPart(int64_t threads, int64_t count, int64_t unit, int64_t products,
                 const Function& fn) {
  const int64_t units = CeilDivide(count, unit);
  const int64_t worth = count * products / kGrainProducts;
  const int64_t parts = std::clamp<int64_t>(std::min(units, worth), 1, threads);
  ParallelFor(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const int64_t begin = units * part / parts * unit;
      const int64_t end = std::min(units * (part + 1) / parts * unit, count);
      fn(part, begin, end);
    }
  });
}

// (rows, columns) to (columns, rows).
void TransposeInParallel(const float* src, int64_t rows, int64_t columns, float* dst) {
  ParallelFor(CeilDivide(columns, kLineFloats), Grain(rows * kLineFloats),
              [&](int64_t first, int64_t last) {
                const int64_t begin = first * kLineFloats;
                const int64_t end = std::min(last * kLineFloats, columns);
                RT_KERNEL(Transpose, src + begin, columns, rows, end - begin, dst + begin * rows,
                          rows);
              });
}

}  // namespace

LinearLayer::LinearLayer(const LinearConfig& config) : config_(config) {}

StatusOr<ShapeInfo> LinearLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  const int64_t K = src[0].C * src[0].plane(), M = config_.out_features();
  RT_RETURN_IF_ERROR(fields().AtLeast("out_features", M, 1));
  dst_ = {src[0].N, M};
  RT_RETURN_IF_ERROR(CheckBlobSize(dst_));
  RT_RETURN_IF_ERROR(CheckBlobSize({M, K}).Annotate("weight"));
  ShapeInfo info{.dst = dst_, .parameters = {}, .forward_flops = 2.0 * dst_.N * K * M};
  info.parameters.push_back({.spec = {"weight", {M, K}, ParameterKind::kLinearWeight},
                             .init = config_.has_weight_init() ? &config_.weight_init() : nullptr,
                             .init_field = "weight_init",
                             .fallback_init = ParameterRequest::Fallback::kHeNormal,
                             .fan_in = K,
                             .fan_out = M});
  if (config_.bias()) {
    info.parameters.push_back({.spec = {"bias", {M}, ParameterKind::kVector},
                               .init = config_.has_bias_init() ? &config_.bias_init() : nullptr,
                               .init_field = "bias_init",
                               .fan_in = K,
                               .fan_out = M});
  }
  return info;
}

bool LinearLayer::FuseActivation(Activation activation) {
  return FuseOnce(activation, &activation_);
}

StatusOr<LayerPlan> LinearLayer::Setup(const SetupArgs& args) {
  RequireF32(args.src);
  src_ = plain_src_ = args.src[0];
  plain_src_.block = 1;
  N_ = src_.N;
  K_ = src_.C * src_.plane();
  M_ = dst_.C;
  weight_ = args.parameters[0];
  bias_ = config_.bias() ? args.parameters[1] : nullptr;
  threads_ = NumComputeThreads();
  const size_t scratch_bytes = LayOutScratch();
  return LayerPlan{.dst = dst_,
                   .scratch_bytes = scratch_bytes,
                   .backward_needs_src = true,
                   .backward_needs_dst = activation_ != Activation::kNone};
}

size_t LinearLayer::LayOutScratch() {
  ScratchLayout layout;
  plain_ = layout.Add<float>(SameLayout(src_, plain_src_) ? 0 : N_ * K_);
  src_columns_ = layout.Add<float>(K_ * N_);
  dst_columns_ = layout.Add<float>(M_ * N_);
  multiply_ = layout.Add<float>(threads_ * RT_KERNEL(MultiplyScratchFloats)());
  return layout.bytes();
}

void LinearLayer::Forward(const ForwardArgs& args) {
  MultiplyForward(PlainSrc(args.src[0], args.scratch), args.scratch);
  FinishForward(ArrayAt<float>(args.scratch, dst_columns_), args.dst);
}

// src (N, C, H, W) in any layout -> (N, K), plain.
const float* LinearLayer::PlainSrc(const float* src, std::byte* scratch) const {
  if (SameLayout(src_, plain_src_)) return src;
  float* plain = ArrayAt<float>(scratch, plain_);
  const int64_t blocks = src_.channel_blocks(), block = src_.block, plane = src_.plane();
  ForEachChannelBlock(src_, [&](int64_t i) {
    const int64_t n = i / blocks, c = i % blocks * block;
    RT_KERNEL(Transpose, src + i * plane * block, block, plane, std::min(block, src_.C - c),
              plain + (n * src_.C + c) * plane, plane);
  });
  return plain;
}

// src (N, K) -> dst_columns (M, N): dst^T = weight src^T, so that weights are read row by row.
void LinearLayer::MultiplyForward(const float* src, std::byte* scratch) const {
  const float* weight = weight_->value().data();
  float* dst_columns = ArrayAt<float>(scratch, dst_columns_);
  if (std::min(N_, M_) <= kFew) {
    ForEachPart(threads_, M_, 1, N_ * K_, [&](int64_t, int64_t begin, int64_t end) {
      RT_KERNEL(MultiplyRowDots,
                {weight + begin * K_, src, dst_columns + begin * N_, end - begin, N_, K_});
    });
    return;
  }
  float* src_columns = ArrayAt<float>(scratch, src_columns_);
  TransposeInParallel(src, N_, K_, src_columns);
  const int64_t unit = RT_KERNEL(MultiplyRows)();
  const int64_t buffer_floats = RT_KERNEL(MultiplyScratchFloats)();
  float* buffers = ArrayAt<float>(scratch, multiply_);
  ForEachPart(threads_, M_, unit, N_ * K_, [&](int64_t part, int64_t begin, int64_t end) {
    const MatrixProduct product = {.a = weight + begin * K_,
                                   .a_stride = K_,
                                   .b = src_columns,
                                   .b_stride = N_,
                                   .c = dst_columns + begin * N_,
                                   .c_stride = N_,
                                   .rows = end - begin,
                                   .depth = K_,
                                   .columns = N_};
    RT_KERNEL(MultiplyLargeAOrC, product, buffers + part * buffer_floats);
  });
}

// dst_columns (M, N) -> dst (N, M) = act(dst_columns^T + bias).
void LinearLayer::FinishForward(const float* dst_columns, float* dst) const {
  const float low = LowerBound(activation_), high = UpperBound(activation_);
  const float* bias = bias_ != nullptr ? bias_->value().data() : nullptr;
  ParallelFor(M_, Grain(N_), [&](int64_t begin, int64_t end) {
    RT_KERNEL(Transpose, dst_columns + begin * N_, N_, end - begin, N_, dst + begin, M_);
    for (int64_t n = 0; n < N_; ++n) {
      RT_KERNEL(AddBiasAndClamp, bias != nullptr ? bias + begin : nullptr, end - begin, low, high,
                dst + n * M_ + begin);
    }
  });
}

void LinearLayer::Backward(const BackwardArgs& args) {
  ApplyActivationGradient(activation_, dst_, args.dst, args.diff_dst);
  BackwardWeights(PlainSrc(args.src[0], args.scratch), args.diff_dst, args.scratch);
  if (bias_ != nullptr) {
    float* diff_bias = bias_->grad().data();
    ParallelFor(M_, Grain(N_), [&](int64_t begin, int64_t end) {
      RT_KERNEL(SumRows, args.diff_dst + begin, M_, N_, end - begin, diff_bias + begin);
    });
  }
  if (args.diff_src[0] == nullptr) return;
  if (SameLayout(src_, plain_src_)) {
    return BackwardData(args.diff_dst, args.diff_src[0], args.scratch);
  }
  float* plain = ArrayAt<float>(args.scratch, plain_);
  BackwardData(args.diff_dst, plain, args.scratch);
  Relayout(plain_src_, plain, src_, args.diff_src[0]);
}

// src (N, K), diff_dst (N, M) -> diff_weight (M, K) = diff_dst^T src.
void LinearLayer::BackwardWeights(const float* src, const float* diff_dst,
                                  std::byte* scratch) const {
  float* diff_weight = weight_->grad().data();
  float* diff_columns = ArrayAt<float>(scratch, dst_columns_);
  TransposeInParallel(diff_dst, N_, M_, diff_columns);
  const bool aligned =
      K_ % kLineFloats == 0 &&
      reinterpret_cast<uintptr_t>(diff_weight) % (kLineFloats * sizeof(float)) == 0;
  const int64_t unit = RT_KERNEL(MultiplyColumns)();
  const int64_t buffer_floats = RT_KERNEL(MultiplyScratchFloats)();
  float* buffers = ArrayAt<float>(scratch, multiply_);
  ForEachPart(threads_, K_, unit, N_ * M_, [&](int64_t part, int64_t begin, int64_t end) {
    if (M_ <= kFew) {
      RT_KERNEL(MultiplyFewRows, {diff_columns, src, diff_weight, M_, N_, K_}, begin, end);
      return;
    }
    const MatrixProduct product = {.a = diff_columns,
                                   .a_stride = N_,
                                   .b = src + begin,
                                   .b_stride = K_,
                                   .c = diff_weight + begin,
                                   .c_stride = K_,
                                   .rows = M_,
                                   .depth = N_,
                                   .columns = end - begin,
                                   .stream_c = aligned && M_ * K_ > kStreamFloats};
    RT_KERNEL(MultiplyLargeAOrC, product, buffers + part * buffer_floats);
  });
}

// diff_dst (N, M) -> diff_src (N, K) = diff_dst weight.
void LinearLayer::BackwardData(const float* diff_dst, float* diff_src, std::byte* scratch) const {
  const float* weight = weight_->value().data();
  if (M_ <= kFew) {  // the weights stay in the caches: sample by sample
    ForEachPart(threads_, N_, 1, K_ * M_, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        RT_KERNEL(MultiplyFewRows, {diff_dst + n * M_, weight, diff_src + n * K_, 1, M_, K_}, 0,
                  K_);
      }
    });
    return;
  }
  const int64_t unit = RT_KERNEL(MultiplyColumns)();
  const int64_t buffer_floats = RT_KERNEL(MultiplyScratchFloats)();
  float* buffers = ArrayAt<float>(scratch, multiply_);
  ForEachPart(threads_, K_, unit, N_ * M_, [&](int64_t part, int64_t begin, int64_t end) {
    if (N_ <= kFew) {
      RT_KERNEL(MultiplyFewRows, {diff_dst, weight, diff_src, N_, M_, K_}, begin, end);
      return;
    }
    const MatrixProduct product = {.a = diff_dst,
                                   .a_stride = M_,
                                   .b = weight + begin,
                                   .b_stride = K_,
                                   .c = diff_src + begin,
                                   .c_stride = K_,
                                   .rows = N_,
                                   .depth = M_,
                                   .columns = end - begin};
    RT_KERNEL(MultiplyLargeB, product, buffers + part * buffer_floats);
  });
}

std::string LinearLayer::Implementation() const {
  return weight_ != nullptr ? KernelImplementation() : std::string();
}

}  // namespace ringtail
