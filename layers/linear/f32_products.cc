#include "layers/linear/f32_products.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/kernels/linear/linear.h"
#include "layers/kernels/linear/linear_few.h"
#include "layers/kernels/linear/linear_multiply.h"
#include "layers/linear/product_parts.h"
#include "layers/parallel_blobs.h"
#include "layers/scratch_layout.h"

namespace ringtail {
namespace {

constexpr int64_t kLineFloats = 16;  // 64 bytes
// Up to so many samples or outputs, reading the weights takes longer than multiplying with them.
constexpr int64_t kFew = 8;

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

F32LinearProducts::F32LinearProducts(const LinearSizes& sizes)
    : N_(sizes.N), K_(sizes.K), M_(sizes.M), threads_(NumComputeThreads()) {
  ScratchLayout layout;
  src_columns_ = layout.Add<float>(K_ * N_);
  dst_columns_ = layout.Add<float>(M_ * N_);
  multiply_ = layout.Add<float>(threads_ * RT_KERNEL(MultiplyScratchFloats)());
  scratch_bytes_ = layout.bytes();
}

void F32LinearProducts::Forward(const float* src, const Weights& weights, Activation activation,
                                float* dst, std::byte* scratch) const {
  MultiplyForward(src, weights.weight, scratch);
  FinishForward(weights.bias, activation, ArrayAt<float>(scratch, dst_columns_), dst);
}

// src (N, K) -> dst_columns (M, N): dst^T = weight src^T, so that weights are read row by row.
void F32LinearProducts::MultiplyForward(const float* src, const float* weight,
                                        std::byte* scratch) const {
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
void F32LinearProducts::FinishForward(const float* bias, Activation activation,
                                      const float* dst_columns, float* dst) const {
  const float low = LowerBound(activation), high = UpperBound(activation);
  ParallelFor(M_, Grain(N_), [&](int64_t begin, int64_t end) {
    RT_KERNEL(Transpose, dst_columns + begin * N_, N_, end - begin, N_, dst + begin, M_);
    for (int64_t n = 0; n < N_; ++n) {
      RT_KERNEL(AddBiasAndClamp, bias != nullptr ? bias + begin : nullptr, end - begin, low, high,
                dst + n * M_ + begin);
    }
  });
}

// src (N, K), diff_dst (N, M) -> diff_weight (M, K) = diff_dst^T src.
void F32LinearProducts::BackwardWeights(const float* src, const float* diff_dst, float* diff_weight,
                                        std::byte* scratch) const {
  float* diff_columns = ArrayAt<float>(scratch, dst_columns_);
  TransposeInParallel(diff_dst, N_, M_, diff_columns);
  const bool stream = StreamsGradient(diff_weight, M_, K_);
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
                                   .stream_c = stream};
    RT_KERNEL(MultiplyLargeAOrC, product, buffers + part * buffer_floats);
  });
}

void F32LinearProducts::BackwardBias(const float* diff_dst, float* diff_bias) const {
  ParallelFor(M_, Grain(N_), [&](int64_t begin, int64_t end) {
    RT_KERNEL(SumRows<float>, diff_dst + begin, M_, N_, end - begin, diff_bias + begin);
  });
}

// diff_dst (N, M) -> diff_src (N, K) = diff_dst weight.
void F32LinearProducts::BackwardData(const float* diff_dst, const float* weight, float* diff_src,
                                     std::byte* scratch) const {
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

}  // namespace ringtail
