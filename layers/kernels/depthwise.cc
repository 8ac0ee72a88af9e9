#include "layers/kernels/depthwise.h"

#include <cmath>

#include "layers/kernels/vec_affine.h"

// Forward and backward-data are one loop over rows of outputs. A row consists of an interior, where
// no column of a window falls into the padding, and of the few columns beside it. The interior is
// worked on in groups of outputs whose sums stay in registers while the rows of the window pass by:
// no branch per pixel, and 8 independent sums hide the latency of the multiply-adds.
//
// Backward-weights is a loop over rows of dst, too; its sums are the taps.
namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int kGroup = 8;  // sums in registers

int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows, or columns, of a plane.
struct Axis {
  int64_t src, dst, pad;
};

// What an output (along one axis) is the sum of, for n in 0 .. count - 1:
//   in[first + n * step] * weight[tap + n * tap_step]
struct Taps {
  int64_t first, step, tap, tap_step, count;
};

struct Range {
  int64_t begin, end;
};

Range Inside(int64_t begin, int64_t end, int64_t size) {
  begin = Min(Max(begin, 0), size);
  return {begin, Max(begin, Min(end, size))};
}

// dst from src: window o begins at src o * kStride - pad.
template <int kKernel, int kStride>
struct Forward {
  static constexpr int kOutputs = 1, kInputs = kStride;  // per step of a group

  static int64_t Outputs(const Axis& axis) { return axis.dst; }
  static int64_t Inputs(const Axis& axis) { return axis.src; }

  static Taps TapsOf(const Axis& axis, int64_t o) {
    const int64_t begin = o * kStride - axis.pad;
    const int64_t tap = Max(0, -begin), end = Min(kKernel, axis.src - begin);
    return {begin + tap, 1, tap, 1, Max(0, end - tap)};
  }
  static Range Interior(const Axis& axis) {
    const int64_t last = axis.src - kKernel + axis.pad;  // begin of the last whole window, plus pad
    return Inside(CeilDiv(axis.pad, kStride), last < 0 ? 0 : last / kStride + 1, axis.dst);
  }
  // The input that a group of outputs beginning at `o` begins with.
  static int64_t FirstInput(const Axis& axis, int64_t o) { return o * kStride - axis.pad; }

  // Adds one row of the windows to the sums.
  template <int kSteps>
  [[gnu::always_inline]] static void AddRow(const float* in, const float* weight, Vec* sum) {
#pragma GCC unroll 5
    for (int j = 0; j < kKernel; ++j) {
      const Vec w = Load(weight + j * kLanes);
#pragma GCC unroll 8
      for (int p = 0; p < kSteps; ++p) sum[p] += Load(in + (p * kStride + j) * kLanes) * w;
    }
  }
};

// diff_src from diff_dst: src s lies in window o as tap s + pad - o * kStride. Step b of a group
// writes the kStride outputs s = b * kStride - pad + r, whose taps are r, r + kStride, ... of
// windows b, b - 1, ...
template <int kKernel, int kStride>
struct Backward {
  static constexpr int kOutputs = kStride, kInputs = 1;

  static int64_t Outputs(const Axis& axis) { return axis.src; }
  static int64_t Inputs(const Axis& axis) { return axis.dst; }

  static Taps TapsOf(const Axis& axis, int64_t s) {
    const int64_t b = (s + axis.pad) / kStride, r = (s + axis.pad) % kStride;
    const int64_t skip = Max(0, b - axis.dst + 1);
    const int64_t end = Min(b + 1, CeilDiv(kKernel - r, kStride));
    return {b - skip, -1, r + skip * kStride, kStride, Max(0, end - skip)};
  }
  static Range Interior(const Axis& axis) {
    const int64_t begin = Max((kKernel - 1) / kStride, CeilDiv(axis.pad, kStride));
    const int64_t end = Min(axis.dst, (axis.src + axis.pad) / kStride);
    if (begin >= end) return {0, 0};
    return {begin * kStride - axis.pad, end * kStride - axis.pad};
  }
  static int64_t FirstInput(const Axis& axis, int64_t s) { return (s + axis.pad) / kStride; }

  template <int kSteps>
  [[gnu::always_inline]] static void AddRow(const float* in, const float* weight, Vec* sum) {
#pragma GCC unroll 5
    for (int j = 0; j < kKernel; ++j) {
      const Vec w = Load(weight + j * kLanes);
#pragma GCC unroll 8
      for (int p = 0; p < kSteps; ++p) {
        sum[p * kStride + j % kStride] += Load(in + (p - j / kStride) * kLanes) * w;
      }
    }
  }
};

struct Epilogue {
  Vec bias, low, high;

  [[gnu::always_inline]] void Write(float* out, Vec sum) const {
    sum = sum < low ? low : sum;  // a NaN stays one
    Store(out, sum > high ? high : sum);
  }
};

// The rows of a plane of inputs.
struct Rows {
  const float* data;
  int64_t floats;  // per row

  const float* At(int64_t y) { return data + y * floats; }
};

// The same, mapped. To be read from the top to the bottom: a row is gone kKernel rows further down.
template <int kKernel>
struct MappedRows {
  const float* data;
  int64_t floats;
  VecAffine affine;
  float* ring;
  int64_t next = 0;  // to be mapped

  const float* At(int64_t y) {
    for (; next <= y; ++next) {
      const float* from = data + next * floats;
      float* to = ring + next % kKernel * floats;
      for (int64_t i = 0; i < floats; i += kLanes) Store(to + i, affine(Load(from + i)));
    }
    return ring + y % kKernel * floats;
  }
};

constexpr int kMaxKernel = 5;

// One row of outputs: the rows of input that it is the sum of.
struct Row {
  const float* in[kMaxKernel];
  const float* weight;
  int64_t weight_step, count;
  float* out;
};

template <typename Direction, int kSteps>
void WriteGroup(const Row& row, int64_t input, int64_t output, const Epilogue& epilogue) {
  constexpr int kSums = kSteps * Direction::kOutputs;
  Vec sum[kSums];
#pragma GCC unroll 8
  for (int p = 0; p < kSums; ++p) sum[p] = epilogue.bias;
  const float* weight = row.weight;
  for (int64_t n = 0; n < row.count; ++n) {
    Direction::template AddRow<kSteps>(row.in[n] + input * kLanes, weight, sum);
    weight += row.weight_step;
  }
  float* out = row.out + output * kLanes;
#pragma GCC unroll 8
  for (int p = 0; p < kSums; ++p) epilogue.Write(out + p * kLanes, sum[p]);
}

// The last steps of the interior, fewer than a whole group.
template <typename Direction, int kSteps>
void WriteRest(const Row& row, int64_t input, int64_t output, int64_t steps,
               const Epilogue& epilogue) {
  if (steps == kSteps) return WriteGroup<Direction, kSteps>(row, input, output, epilogue);
  if constexpr (kSteps > 1) {
    WriteRest<Direction, kSteps - 1>(row, input, output, steps, epilogue);
  }
}

// Columns [begin, end), one by one, with those taps that are not in the padding.
template <typename Direction>
void WriteEdge(const Row& row, const Axis& columns, int64_t begin, int64_t end,
               const Epilogue& epilogue) {
  for (int64_t x = begin; x < end; ++x) {
    const Taps taps = Direction::TapsOf(columns, x);
    Vec sum = epilogue.bias;
    for (int64_t n = 0; n < row.count; ++n) {
      const float* in = row.in[n] + taps.first * kLanes;
      const float* weight = row.weight + n * row.weight_step + taps.tap * kLanes;
      for (int64_t m = 0; m < taps.count; ++m) {
        sum += Load(in + m * taps.step * kLanes) * Load(weight + m * taps.tap_step * kLanes);
      }
    }
    epilogue.Write(row.out + x * kLanes, sum);
  }
}

template <typename Direction, int kKernel, typename InputRows>
void Run(const DepthwisePlane& plane, InputRows in, const float* weight, const Epilogue& epilogue,
         float* out) {
  constexpr int kOutputs = Direction::kOutputs, kSteps = kGroup / kOutputs;
  const Axis rows = {plane.H, plane.OH, plane.pad_top};
  const Axis columns = {plane.W, plane.OW, plane.pad_left};
  const int64_t width = Direction::Outputs(columns);
  const int64_t weight_row = kKernel * kLanes;
  const Range interior = Direction::Interior(columns);
  for (int64_t y = 0; y < Direction::Outputs(rows); ++y) {
    const Taps taps = Direction::TapsOf(rows, y);
    Row row = {.in = {},
               .weight = weight + taps.tap * weight_row,
               .weight_step = taps.tap_step * weight_row,
               .count = taps.count,
               .out = out + y * width * kLanes};
    for (int64_t n = 0; n < taps.count; ++n) row.in[n] = in.At(taps.first + n * taps.step);
    WriteEdge<Direction>(row, columns, 0, interior.begin, epilogue);
    int64_t x = interior.begin, input = Direction::FirstInput(columns, x);
    for (; x + kGroup <= interior.end; x += kGroup, input += kSteps * Direction::kInputs) {
      WriteGroup<Direction, kSteps>(row, input, x, epilogue);
    }
    WriteRest<Direction, kSteps - 1>(row, input, x, (interior.end - x) / kOutputs, epilogue);
    WriteEdge<Direction>(row, columns, interior.end, width, epilogue);
  }
}

// sums[j] += gradient times src[j] of its window, over the interior of one row of dst, for one row
// of the window. Taking all rows of the window at once would read the gradient once instead of
// kKernel times, but only from the first-level cache; and the processor fetches one row of src from
// memory ahead of its use better than several that advance together (stride 2: a third faster).
template <int kKernel, int kStride>
void AddInterior(const float* gradient, const float* src, const Axis& columns,
                 const Range& interior, Vec* sums) {
  constexpr int kSteps = kRegisters == 32 ? 4 : 2;  // pixels with sums of their own: latency again
  Vec sum[kSteps][kKernel];  // of this row alone: sums of sums lose fewer bits than one long sum
#pragma GCC unroll 5
  for (int j = 0; j < kKernel; ++j) {
#pragma GCC unroll 4
    for (int p = 0; p < kSteps; ++p) sum[p][j] = Vec{};
  }
  src += (interior.begin * kStride - columns.pad) * kLanes;
  int64_t x = interior.begin;
  for (; x + kSteps <= interior.end; x += kSteps, src += kSteps * kStride * kLanes) {
#pragma GCC unroll 4
    for (int p = 0; p < kSteps; ++p) {
      const Vec g = Load(gradient + (x + p) * kLanes);
#pragma GCC unroll 5
      for (int j = 0; j < kKernel; ++j) sum[p][j] += Load(src + (p * kStride + j) * kLanes) * g;
    }
  }
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

template <int kKernel, int kStride, typename SrcRows>
void SumGradients(const DepthwisePlane& plane, SrcRows src, const float* diff_dst,
                  float* diff_weight) {
  using Direction = Forward<kKernel, kStride>;
  const Axis rows = {plane.H, plane.OH, plane.pad_top};
  const Axis columns = {plane.W, plane.OW, plane.pad_left};
  const Range interior = Direction::Interior(columns);
  Vec sums[kKernel * kKernel];
  for (int i = 0; i < kKernel * kKernel; ++i) sums[i] = Load(diff_weight + i * kLanes);
  for (int64_t y = 0; y < plane.OH; ++y) {
    const Taps taps = Direction::TapsOf(rows, y);
    const float* gradient = diff_dst + y * plane.OW * kLanes;
    for (int64_t n = 0; n < taps.count; ++n) {
      const float* row = src.At(taps.first + n);
      Vec* sum = sums + (taps.tap + n) * kKernel;
      AddEdge<kKernel, kStride>(gradient, row, columns, 0, interior.begin, sum);
      AddInterior<kKernel, kStride>(gradient, row, columns, interior, sum);
      AddEdge<kKernel, kStride>(gradient, row, columns, interior.end, plane.OW, sum);
    }
  }
  for (int i = 0; i < kKernel * kKernel; ++i) Store(diff_weight + i * kLanes, sums[i]);
}

void SumBias(const DepthwisePlane& plane, const float* diff_dst, float* diff_bias) {
  Vec sum = Load(diff_bias);
  for (int64_t y = 0; y < plane.OH; ++y) {
    Vec row = {};
    for (int64_t x = 0; x < plane.OW; ++x) row += Load(diff_dst + (y * plane.OW + x) * kLanes);
    sum += row;
  }
  Store(diff_bias, sum);
}

// Calls run(rows of src).
template <int kKernel, typename Function>
void WithRows(const DepthwisePlane& plane, const DepthwiseSrc& src, const Function& run) {
  const int64_t floats = plane.W * kLanes;
  if (src.affine.mean == nullptr) return run(Rows{src.data, floats});
  run(MappedRows<kKernel>{src.data, floats, VecAffine(src.affine), src.ring});
}

}  // namespace

void DepthwiseForward(const DepthwisePlane& plane, const DepthwiseSrc& src, const float* weight,
                      const DepthwiseEpilogue& epilogue, float* dst) {
  const Epilogue e = {Load(epilogue.bias), Broadcast(epilogue.low), Broadcast(epilogue.high)};
  const bool unit = plane.stride == 1;
  if (plane.kernel == 3) {
    return WithRows<3>(plane, src, [&](auto rows) {
      unit ? Run<Forward<3, 1>, 3>(plane, rows, weight, e, dst)
           : Run<Forward<3, 2>, 3>(plane, rows, weight, e, dst);
    });
  }
  WithRows<5>(plane, src, [&](auto rows) {
    unit ? Run<Forward<5, 1>, 5>(plane, rows, weight, e, dst)
         : Run<Forward<5, 2>, 5>(plane, rows, weight, e, dst);
  });
}

void DepthwiseBackwardData(const DepthwisePlane& plane, const float* diff_dst, const float* weight,
                           float* diff_src) {
  const Epilogue e = {Vec{}, Broadcast(-INFINITY), Broadcast(INFINITY)};
  const Rows rows = {diff_dst, plane.OW * kLanes};
  const bool unit = plane.stride == 1;
  if (plane.kernel == 3) {
    return unit ? Run<Backward<3, 1>, 3>(plane, rows, weight, e, diff_src)
                : Run<Backward<3, 2>, 3>(plane, rows, weight, e, diff_src);
  }
  unit ? Run<Backward<5, 1>, 5>(plane, rows, weight, e, diff_src)
       : Run<Backward<5, 2>, 5>(plane, rows, weight, e, diff_src);
}

void DepthwiseBackwardWeights(const DepthwisePlane& plane, const DepthwiseSrc& src,
                              const float* diff_dst, float* diff_weight, float* diff_bias) {
  const bool unit = plane.stride == 1;
  if (plane.kernel == 3) {
    WithRows<3>(plane, src, [&](auto rows) {
      unit ? SumGradients<3, 1>(plane, rows, diff_dst, diff_weight)
           : SumGradients<3, 2>(plane, rows, diff_dst, diff_weight);
    });
  } else {
    WithRows<5>(plane, src, [&](auto rows) {
      unit ? SumGradients<5, 1>(plane, rows, diff_dst, diff_weight)
           : SumGradients<5, 2>(plane, rows, diff_dst, diff_weight);
    });
  }
  if (diff_bias != nullptr) SumBias(plane, diff_dst, diff_bias);
}

int64_t DepthwiseLanes() { return kLanes; }

}  // namespace ringtail::RT_KERNEL_ISA
