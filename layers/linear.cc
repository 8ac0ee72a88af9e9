#include "layers/linear.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/parallel_for.h"
#include "layers/activations/activation_gradient.h"
#include "layers/kernels/linear/linear.h"
#include "layers/kernels/linear/linear_few.h"
#include "layers/kernels/linear/linear_multiply.h"
#include "layers/parallel_blobs.h"
#include "layers/relayout.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

constexpr int64_t kLineFloats = 16;  // 64 bytes
// Up to here reading the weights takes longer than multiplying with them.
constexpr int64_t kFew = 8;
// Gradients above this are not in a cache any more when the optimizer reads them.
constexpr int64_t kStreamFloats = (16 << 20) / sizeof(float);
// Multiply-adds below which a thread costs more than it saves.
constexpr int64_t kGrainProducts = 1 << 16;

// Splits 0 .. count - 1 at multiples of `unit` and calls fn(part, begin, end) for each part, in
// parallel; `products` multiply-adds are done for each of count.
template <typename Function>
void ForEachPart(int64_t threads, int64_t count, int64_t unit, int64_t products,
                 const Function& fn) {
  const int64_t units = (count + unit - 1) / unit;
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
  ParallelFor((columns + kLineFloats - 1) / kLineFloats, Grain(rows * kLineFloats),
              [&](int64_t first, int64_t last) {
                const int64_t begin = first * kLineFloats;
                const int64_t end = std::min(last * kLineFloats, columns);
                RT_KERNEL(Transpose)
                (src + begin, columns, rows, end - begin, dst + begin * rows, rows);
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
  if (activation_ != Activation::kNone) return false;
  activation_ = activation;
  return true;
}

StatusOr<LayerPlan> LinearLayer::Setup(const SetupArgs& args) {
  src_ = plain_src_ = args.src[0];
  plain_src_.block = 1;
  N_ = src_.N;
  K_ = src_.C * src_.plane();
  M_ = dst_.C;
  weight_ = args.parameters[0];
  bias_ = config_.bias() ? args.parameters[1] : nullptr;
  threads_ = NumComputeThreads();
  areas_ = LayOut();
  return LayerPlan{.dst = dst_,
                   .scratch_bytes = areas_.floats * sizeof(float),
                   .backward_needs_src = true,
                   .backward_needs_dst = activation_ != Activation::kNone};
}

LinearLayer::Areas LinearLayer::LayOut() const {
  Areas areas;
  const auto add = [&](int64_t floats) {
    const int64_t offset = areas.floats;
    areas.floats += (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
    return offset;
  };
  areas.plain = add(SameLayout(src_, plain_src_) ? 0 : N_ * K_);
  areas.src_columns = add(K_ * N_);
  areas.dst_columns = add(M_ * N_);
  areas.multiply = add(threads_ * RT_KERNEL(MultiplyScratchFloats)());
  return areas;
}

void LinearLayer::Forward(const ForwardArgs& args) {
  auto* scratch = reinterpret_cast<float*>(args.scratch);
  MultiplyForward(PlainSrc(args.src[0], scratch), scratch);
  FinishForward(scratch + areas_.dst_columns, args.dst);
}

const float* LinearLayer::PlainSrc(const float* src, float* scratch) const {
  if (SameLayout(src_, plain_src_)) return src;
  float* plain = scratch + areas_.plain;
  const int64_t blocks = src_.channel_blocks(), block = src_.block, plane = src_.plane();
  ForEachChannelBlock(src_, [&](int64_t i) {
    const int64_t n = i / blocks, c = i % blocks * block;
    RT_KERNEL(Transpose)
    (src + i * plane * block, block, plane, std::min(block, src_.C - c),
     plain + (n * src_.C + c) * plane, plane);
  });
  return plain;
}

// Computes dst^T, so that weights are read row by row.
void LinearLayer::MultiplyForward(const float* src, float* scratch) const {
  const float* weight = weight_->value().data();
  float* dst_columns = scratch + areas_.dst_columns;
  if (std::min(N_, M_) <= kFew) {
    ForEachPart(threads_, M_, 1, N_ * K_, [&](int64_t, int64_t begin, int64_t end) {
      RT_KERNEL(MultiplyRowDots)
      ({weight + begin * K_, src, dst_columns + begin * N_, end - begin, N_, K_});
    });
    return;
  }
  float* src_columns = scratch + areas_.src_columns;
  TransposeInParallel(src, N_, K_, src_columns);
  const int64_t unit = RT_KERNEL(MultiplyRows)(), buffer = RT_KERNEL(MultiplyScratchFloats)();
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
    RT_KERNEL(MultiplyLargeAOrC)(product, scratch + areas_.multiply + part * buffer);
  });
}

void LinearLayer::FinishForward(const float* dst_columns, float* dst) const {
  const float low = LowerBound(activation_), high = UpperBound(activation_);
  const float* bias = bias_ != nullptr ? bias_->value().data() : nullptr;
  ParallelFor(M_, Grain(N_), [&](int64_t begin, int64_t end) {
    RT_KERNEL(Transpose)(dst_columns + begin * N_, N_, end - begin, N_, dst + begin, M_);
    for (int64_t n = 0; n < N_; ++n) {
      RT_KERNEL(AddBiasAndClamp)
      (bias != nullptr ? bias + begin : nullptr, end - begin, low, high, dst + n * M_ + begin);
    }
  });
}

void LinearLayer::Backward(const BackwardArgs& args) {
  auto* scratch = reinterpret_cast<float*>(args.scratch);
  ApplyActivationGradient(activation_, args.dst, args.diff_dst, dst_.elements());
  BackwardWeights(PlainSrc(args.src[0], scratch), args.diff_dst, scratch);
  if (bias_ != nullptr) {
    float* diff_bias = bias_->grad().data();
    ParallelFor(M_, Grain(N_), [&](int64_t begin, int64_t end) {
      RT_KERNEL(SumRows)(args.diff_dst + begin, M_, N_, end - begin, diff_bias + begin);
    });
  }
  if (args.diff_src[0] == nullptr) return;
  if (SameLayout(src_, plain_src_)) return BackwardData(args.diff_dst, args.diff_src[0], scratch);
  BackwardData(args.diff_dst, scratch + areas_.plain, scratch);
  Relayout(plain_src_, scratch + areas_.plain, src_, args.diff_src[0]);
}

void LinearLayer::BackwardWeights(const float* src, const float* diff_dst, float* scratch) const {
  float* diff_weight = weight_->grad().data();
  float* diff_columns = scratch + areas_.dst_columns;
  TransposeInParallel(diff_dst, N_, M_, diff_columns);
  const bool aligned =
      K_ % kLineFloats == 0 &&
      reinterpret_cast<uintptr_t>(diff_weight) % (kLineFloats * sizeof(float)) == 0;
  const int64_t unit = RT_KERNEL(MultiplyColumns)(), buffer = RT_KERNEL(MultiplyScratchFloats)();
  ForEachPart(threads_, K_, unit, N_ * M_, [&](int64_t part, int64_t begin, int64_t end) {
    if (M_ <= kFew) {
      RT_KERNEL(MultiplyFewRows)({diff_columns, src, diff_weight, M_, N_, K_}, begin, end);
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
    RT_KERNEL(MultiplyLargeAOrC)(product, scratch + areas_.multiply + part * buffer);
  });
}

void LinearLayer::BackwardData(const float* diff_dst, float* diff_src, float* scratch) const {
  const float* weight = weight_->value().data();
  if (M_ <= kFew) {  // the weights stay in the caches: sample by sample
    ForEachPart(threads_, N_, 1, K_ * M_, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        RT_KERNEL(MultiplyFewRows)
        ({diff_dst + n * M_, weight, diff_src + n * K_, 1, M_, K_}, 0, K_);
      }
    });
    return;
  }
  const int64_t unit = RT_KERNEL(MultiplyColumns)(), buffer = RT_KERNEL(MultiplyScratchFloats)();
  ForEachPart(threads_, K_, unit, N_ * M_, [&](int64_t part, int64_t begin, int64_t end) {
    if (N_ <= kFew) {
      RT_KERNEL(MultiplyFewRows)({diff_dst, weight, diff_src, N_, M_, K_}, begin, end);
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
    RT_KERNEL(MultiplyLargeB)(product, scratch + areas_.multiply + part * buffer);
  });
}

std::string LinearLayer::Implementation() const {
  return weight_ != nullptr ? KernelImplementation() : std::string();
}

}  // namespace ringtail
