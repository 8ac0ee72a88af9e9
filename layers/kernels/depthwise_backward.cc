#include <cmath>

#include "layers/kernels/batch_norm.h"
#include "layers/kernels/depthwise.h"
#include "layers/kernels/depthwise_rows.h"
#include "layers/kernels/depthwise_taps.h"
#include "layers/kernels/vec_affine.h"

// One loop over the rows of dst. Each row first gives its share to the gradient of the weights,
// whose sums are the taps; then the rows of diff_src are written whose last window it has. So each
// row of diff_dst is read, or mapped, once and both find it in the first-level cache.
namespace ringtail::RT_KERNEL_ISA {
namespace depthwise {
namespace {

// sums[j] += gradient times src[j] of its window, over the interior of one row of dst, for one row
// of the window. Taking all rows of the window at once would read the gradient once instead of
// kKernel times, but only from the first-level cache; and the processor fetches one row of src from
// memory ahead of its use better than several that advance together (stride 2: a third faster).
template <int kKernel, int kStride>
void AddInterior(const float* gradient, const float* src, const Axis& columns,
                 const Range& interior, const Ahead& ahead, Vec* sums) {
  constexpr int kSteps = kRegisters == 32 ? 4 : 2;  // pixels with sums of their own: latency again
  Vec sum[kSteps][kKernel];  // of this row alone: sums of sums lose fewer bits than one long sum
#pragma GCC unroll 5
  for (int j = 0; j < kKernel; ++j) {
#pragma GCC unroll 4
    for (int p = 0; p < kSteps; ++p) sum[p][j] = Vec{};
  }
  src += (interior.begin * kStride - columns.pad) * kLanes;
  int64_t x = interior.begin;
  ahead.Fetch(0, x);
  for (; x + kSteps <= interior.end; x += kSteps, src += kSteps * kStride * kLanes) {
    ahead.Fetch(x, kSteps);
    Vec g[kSteps];
#pragma GCC unroll 4
    for (int p = 0; p < kSteps; ++p) g[p] = LoadOnce(gradient + (x + p) * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < (kSteps - 1) * kStride + kKernel; ++i) {  // each input is loaded once
      const Vec input = LoadOnce(src + i * kLanes);
#pragma GCC unroll 5
      for (int j = 0; j < kKernel; ++j) {
        const int p = (i - j) / kStride;
        if (i >= j && (i - j) % kStride == 0 && p < kSteps) sum[p][j] += input * g[p];
      }
    }
  }
  ahead.Fetch(x, columns.dst - x);
  for (; x < interior.end; ++x, src += kStride * kLanes) {
    const Vec g = Load(gradient + x * kLanes);
#pragma GCC unroll 5
    for (int j = 0; j < kKernel; ++j) sum[0][j] += Load(src + j * kLanes) * g;
  }
#pragma GCC unroll 5
  for (int j = 0; j < kKernel; ++j) {
#pragma GCC unroll 4
    for (int p = 1; p < kSteps; ++p) sum[0][j] += sum[p][j];
    sums[j] += sum[0][j];
  }
}

// The same for columns [begin, end), with those taps that are not in the padding.
template <int kKernel, int kStride>
void AddEdge(const float* gradient, const float* src, const Axis& columns, int64_t begin,
             int64_t end, Vec* sums) {
  for (int64_t x = begin; x < end; ++x) {
    const Taps taps = Forward<kKernel, kStride>::TapsOf(columns, x);
    const Vec g = Load(gradient + x * kLanes);
    for (int64_t j = 0; j < taps.count; ++j) {
      sums[taps.tap + j] += Load(src + (taps.first + j) * kLanes) * g;
    }
  }
}

constexpr int kInputs = 3;  // what is read: diff_dst, what it is a map of, src

// Adds what row y of dst gives to the taps. `ahead`: what to fetch with each row of the window.
template <int kKernel, int kStride>
void AddRow(const Geometry<Forward<kKernel, kStride>>& geometry, int64_t y,
            InputRows<kKernel, DepthwiseSrc>* src, const float* gradient,
            const Ahead (&ahead)[kInputs], Vec* sums) {
  const Axis& columns = geometry.columns;
  const Range interior = geometry.interior;
  const Taps taps = Forward<kKernel, kStride>::TapsOf(geometry.rows, y);
  for (int64_t n = 0; n < taps.count; ++n) {
    const float* row = src->At(taps.first + n);
    Vec* sum = sums + (taps.tap + n) * kKernel;
    AddEdge<kKernel, kStride>(gradient, row, columns, 0, interior.begin, sum);
    AddInterior<kKernel, kStride>(gradient, row, columns, interior,
                                  n < kInputs ? ahead[n] : Ahead(), sum);
    AddEdge<kKernel, kStride>(gradient, row, columns, interior.end, columns.dst, sum);
  }
}

Vec SumRow(const float* row, int64_t width) {
  Vec sum = {};
  for (int64_t x = 0; x < width; ++x) sum += Load(row + x * kLanes);
  return sum;
}

// Adds up what is wanted of the gradients of the parameters.
template <int kKernel, int kStride>
class ParameterSums {
 public:
  ParameterSums(const DepthwisePlane& plane, const DepthwiseSrc& src, float* diff_weight,
                float* diff_bias)
      : geometry_(plane), src_(src, plane.W), diff_weight_(diff_weight), diff_bias_(diff_bias) {
    if (diff_weight != nullptr) {
      for (int i = 0; i < kTaps; ++i) taps_[i] = Load(diff_weight + i * kLanes);
    }
    if (diff_bias != nullptr) bias_ = Load(diff_bias);
  }

  // Row y of diff_dst.
  void Add(int64_t y, const float* gradient, const Ahead (&ahead)[kInputs]) {
    if (diff_weight_ != nullptr) AddRow(geometry_, y, &src_, gradient, ahead, taps_);
    if (diff_bias_ != nullptr) bias_ += SumRow(gradient, geometry_.columns.dst);
  }

  void Finish() const {
    if (diff_weight_ != nullptr) {
      for (int i = 0; i < kTaps; ++i) Store(diff_weight_ + i * kLanes, taps_[i]);
    }
    if (diff_bias_ != nullptr) Store(diff_bias_, bias_);
  }

 private:
  static constexpr int kTaps = kKernel * kKernel;

  const Geometry<Forward<kKernel, kStride>> geometry_;
  InputRows<kKernel, DepthwiseSrc> src_;
  float *const diff_weight_, *const diff_bias_;
  Vec taps_[kTaps], bias_;
};

// Adds up what batch norm wants of diff_src, to the same bits as BatchNormGradientSums would.
class GradientSums {
 public:
  GradientSums(const DepthwiseSrc& src, const DepthwiseSums& to, int64_t width)
      : src_(src), to_(to), width_(width) {}

  void AddRow(int64_t y, const float* diff_src) {
    if (to_.g == nullptr) return;
    const float* src = src_.data + y * width_ * kLanes;
    for (int64_t x = 0; x < width_;) {
      const int64_t pixels = Min(width_ - x, kPiecePixels - pixel_);
      AddPixels(src + x * kLanes, diff_src + x * kLanes, pixels);
      x += pixels;
      pixel_ += pixels;
      if (pixel_ == kPiecePixels) Fold();
    }
  }

  void Finish() {
    if (to_.g == nullptr) return;
    Fold();
    for (int i = 0; i < kLanes; ++i) {
      to_.g[i] = g_[i];
      to_.gx[i] = gx_[i];
    }
  }

 private:
  static constexpr int kSums = kBatchNormLanes / kLanes;  // pixels side by side
  static constexpr int64_t kPiecePixels = kBatchNormPiece / kLanes;

  // Sums of one piece.
  void AddPixels(const float* src, const float* diff_src, int64_t pixels) {
    const VecAffine affine(src_.affine);
    VecGradientSums sums[kSums];
    for (int i = 0; i < kSums; ++i) sums[i] = sums_[i];
    const auto add = [&](int64_t i, VecGradientSums* sum) {
      sum->Add(affine, Load(src + i * kLanes), Load(diff_src + i * kLanes));
    };
    int64_t i = 0;
    for (; i < pixels && (pixel_ + i) % kSums != 0; ++i) add(i, &sums[(pixel_ + i) % kSums]);
    for (; i + kSums <= pixels; i += kSums) {
#pragma GCC unroll 2
      for (int k = 0; k < kSums; ++k) add(i + k, &sums[k]);
    }
    for (; i < pixels; ++i) add(i, &sums[(pixel_ + i) % kSums]);
    for (int k = 0; k < kSums; ++k) sums_[k] = sums[k];
  }

  void Fold() {
    for (VecGradientSums& sum : sums_) {
      for (int i = 0; i < kLanes; ++i) {
        g_[i] += sum.g[i];
        gx_[i] += sum.gx[i];
      }
      sum = {};
    }
    pixel_ = 0;
  }

  const DepthwiseSrc src_;
  const DepthwiseSums to_;
  const int64_t width_;
  VecGradientSums sums_[kSums];
  int64_t pixel_ = 0;  // of the piece
  double g_[kLanes] = {}, gx_[kLanes] = {};
};

template <int kKernel, int kStride>
void RunBackward(const DepthwisePlane& plane, const DepthwiseSrc& src,
                 const DepthwiseGradient& diff_dst, const float* weight,
                 const DepthwiseOutput& diff_src, float* diff_weight, float* diff_bias,
                 const DepthwiseSums& diff_src_sums) {
  const Geometry<Backward<kKernel, kStride>> geometry(plane);
  const Epilogue epilogue = {Vec{}, Broadcast(-INFINITY), Broadcast(INFINITY)};
  InputRows<kKernel, DepthwiseGradient> gradients(diff_dst, plane.OW);
  ParameterSums<kKernel, kStride> sums(plane, src, diff_weight, diff_bias);
  const OutputRows out(diff_src, plane.W);
  GradientSums diff_sums(src, diff_src_sums, plane.W);
  int64_t written = 0;  // rows of diff_src
  for (int64_t y = 0; y < plane.OH; ++y) {
    const int64_t dst_row = y * plane.OW * kLanes, src_row = y * kStride * plane.W * kLanes;
    const Ahead diff_ahead = {diff_dst.data + dst_row};
    Ahead map_ahead, src_ahead;
    if (diff_dst.map.src != nullptr) map_ahead.at = diff_dst.map.src + dst_row;
    if (diff_weight != nullptr && diff_src.data == nullptr) {
      src_ahead = {src.data + src_row, kStride * kStride};
    }
    sums.Add(y, gradients.At(y), {diff_ahead, map_ahead, src_ahead});
    if (diff_src.data == nullptr) continue;
    const bool last = y + 1 == plane.OH;  // then those below all windows, too
    const int64_t end = last ? plane.H : Min((y + 1) * kStride - plane.pad_top, plane.H);
    for (; written < end; ++written) {
      Ahead ahead = diff_ahead;
      if (diff_weight != nullptr) ahead.at = src.data + written * plane.W * kLanes;
      WriteRow(geometry, written, &gradients, weight, epilogue, ahead, out.At(written));
      diff_sums.AddRow(written, out.At(written));
      out.Finish(written, written + 1);
    }
  }
  sums.Finish();
  diff_sums.Finish();
}

}  // namespace
}  // namespace depthwise

void DepthwiseBackward(const DepthwisePlane& plane, const DepthwiseSrc& src,
                       const DepthwiseGradient& diff_dst, const float* weight,
                       const DepthwiseOutput& diff_src, float* diff_weight, float* diff_bias,
                       const DepthwiseSums& diff_src_sums) {
  using depthwise::RunBackward;
  const auto run = plane.kernel == 3 ? (plane.stride == 1 ? RunBackward<3, 1> : RunBackward<3, 2>)
                                     : (plane.stride == 1 ? RunBackward<5, 1> : RunBackward<5, 2>);
  run(plane, src, diff_dst, weight, diff_src, diff_weight, diff_bias, diff_src_sums);
  if (diff_src.buffer != nullptr) FinishStreaming();
}

}  // namespace ringtail::RT_KERNEL_ISA
