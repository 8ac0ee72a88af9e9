// The inputs that an output of depthwise convolution is the sum of, and the loop over a row of
// outputs. Only for layers/kernels/depthwise*.cc.
//
// Forward and backward-data are one loop over rows of outputs. A row consists of an interior, where
// no column of a window falls into the padding, and of the few columns beside it. The interior is
// worked on in groups of outputs whose sums stay in registers while the rows of the window pass by:
// no branch per pixel, and 8 independent sums hide the latency of the multiply-adds.
#ifndef RINGTAIL_LAYERS_KERNELS_DEPTHWISE_TAPS_H_
#define RINGTAIL_LAYERS_KERNELS_DEPTHWISE_TAPS_H_

#include <cstdint>

#include "core/kernels/vec.h"
#include "layers/kernels/clamp.h"
#include "layers/kernels/depthwise.h"
#include "layers/kernels/integers.h"

namespace ringtail::RT_KERNEL_ISA::depthwise {

constexpr int kGroup = 8;  // sums in registers

// How far ahead of its use an input is prefetched, in floats. The processor foresees by itself the
// next input within a row, but not across rows: without this a thread alternates between computing
// and waiting for memory. It would as well if a whole row were prefetched at once, of which only
// some lines can be in flight: a few lines are prefetched at a time, between the multiply-adds.
// The plane that follows in memory is, as a rule, the one that is worked on next.
constexpr int64_t kAhead = 4096;

// An input that is prefetched while a row of outputs is computed: `lines` times kLanes floats for
// each output.
struct Ahead {
  const float* at = nullptr;  // null: nothing
  int64_t lines = 1;

  // With outputs [x, x + count).
  [[gnu::always_inline]] void Fetch(int64_t x, int64_t count) const {
    if (at == nullptr) return;
    const float* from = at + kAhead + x * lines * kLanes;
    for (int64_t i = 0; i < count * lines; ++i) {
      __builtin_prefetch(from + i * kLanes, /*write=*/0, /*locality=*/2);
    }
  }
};

// Rows, or columns, of a plane.
struct Axis {
  int64_t src, dst, pad;
};

// The terms of the sum that an output is, along one axis, for n in 0 .. count - 1:
//   in[first + n * step] * weight[tap + n * tap_step]
struct Taps {
  int64_t first, step, tap, tap_step, count;
};

struct Range {
  int64_t begin, end;
};

static inline Range Inside(int64_t begin, int64_t end, int64_t size) {
  begin = Min(Max(begin, 0), size);
  return {begin, Max(begin, Min(end, size))};
}

// dst from src: window o begins at src o * kStride - pad.
template <int kKernel, int kStride>
struct Forward {
  static constexpr int kTaps = kKernel, kOutputs = 1, kInputs = kStride;  // per step of a group

  static int64_t Outputs(const Axis& axis) { return axis.dst; }

  static Taps TapsOf(const Axis& axis, int64_t o) {
    const int64_t begin = o * kStride - axis.pad;
    const int64_t tap = Max(0, -begin), end = Min(kKernel, axis.src - begin);
    return {begin + tap, 1, tap, 1, Max(0, end - tap)};
  }
  static Range Interior(const Axis& axis) {
    const int64_t last = axis.src - kKernel + axis.pad;  // begin of the last whole window, plus pad
    return Inside(CeilDivide(axis.pad, kStride), last < 0 ? 0 : last / kStride + 1, axis.dst);
  }
  // The input that a group of outputs beginning at `o` begins with.
  static int64_t FirstInput(const Axis& axis, int64_t o) { return o * kStride - axis.pad; }

  // Adds one row of the windows to the sums. Each input is loaded once, for all windows that it is
  // in: a load costs as much as a multiply-add.
  template <int kSteps>
  [[gnu::always_inline]] static void AddRow(const float* in, const float* weight, Vec* sum) {
    Vec w[kKernel];
#pragma GCC unroll 5
    for (int j = 0; j < kKernel; ++j) w[j] = Load(weight + j * kLanes);
#pragma GCC unroll 24
    for (int i = 0; i < (kSteps - 1) * kStride + kKernel; ++i) {
      const Vec input = LoadOnce(in + i * kLanes);
#pragma GCC unroll 5
      for (int j = 0; j < kKernel; ++j) {
        const int step = (i - j) / kStride;
        const bool taps = i >= j && (i - j) % kStride == 0 && step < kSteps;
        if (taps) sum[step] += input * w[j];
      }
    }
  }
};

// diff_src from diff_dst: src s lies in window o as tap s + pad - o * kStride. Step b of a group
// writes the kStride outputs s = b * kStride - pad + r, whose taps are r, r + kStride, ... of
// windows b, b - 1, ...
template <int kKernel, int kStride>
struct Backward {
  static constexpr int kTaps = kKernel, kOutputs = kStride, kInputs = 1;

  static int64_t Outputs(const Axis& axis) { return axis.src; }

  static Taps TapsOf(const Axis& axis, int64_t s) {
    const int64_t b = (s + axis.pad) / kStride, r = (s + axis.pad) % kStride;
    const int64_t skip = Max(0, b - axis.dst + 1);
    const int64_t end = Min(b + 1, CeilDivide(kKernel - r, kStride));
    return {b - skip, -1, r + skip * kStride, kStride, Max(0, end - skip)};
  }
  static Range Interior(const Axis& axis) {
    const int64_t begin = Max((kKernel - 1) / kStride, CeilDivide(axis.pad, kStride));
    const int64_t end = Min(axis.dst, (axis.src + axis.pad) / kStride);
    if (begin >= end) return {0, 0};
    return {begin * kStride - axis.pad, end * kStride - axis.pad};
  }
  static int64_t FirstInput(const Axis& axis, int64_t s) { return (s + axis.pad) / kStride; }

  template <int kSteps>
  [[gnu::always_inline]] static void AddRow(const float* in, const float* weight, Vec* sum) {
    constexpr int kBefore = (kKernel - 1) / kStride;  // windows that reach into the first step
    Vec w[kKernel];
#pragma GCC unroll 5
    for (int j = 0; j < kKernel; ++j) w[j] = Load(weight + j * kLanes);
#pragma GCC unroll 12
    for (int i = -kBefore; i < kSteps; ++i) {
      const Vec input = LoadOnce(in + i * kLanes);
#pragma GCC unroll 5
      for (int j = 0; j < kKernel; ++j) {
        const int step = i + j / kStride;
        if (step >= 0 && step < kSteps) sum[step * kStride + j % kStride] += input * w[j];
      }
    }
  }
};

// The windows of a plane, as a direction sees them.
template <typename Direction>
struct Geometry {
  Axis rows, columns;
  Range interior;  // columns of outputs whose windows have all their columns

  explicit Geometry(const DepthwisePlane& plane)
      : rows{plane.H, plane.OH, plane.pad_top},
        columns{plane.W, plane.OW, plane.pad_left},
        interior(Direction::Interior(columns)) {}
};

struct Epilogue {
  Vec bias, low, high;

  [[gnu::always_inline]] void Write(float* out, Vec sum) const {
    Store(out, Clamped(sum, low, high));
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
  const Epilogue last = epilogue;  // in registers: the compiler cannot know that `out` is not there
#pragma GCC unroll 8
  for (int p = 0; p < kSums; ++p) last.Write(out + p * kLanes, sum[p]);
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

// Writes row y of outputs to `out`. `in`: rows, see InputRows. `ahead`: what to fetch meanwhile.
template <typename Direction, typename Rows>
void WriteRow(const Geometry<Direction>& geometry, int64_t y, Rows* in, const float* weight,
              const Epilogue& epilogue, const Ahead& ahead, float* out) {
  constexpr int kSteps = kGroup / Direction::kOutputs;
  constexpr int64_t kWeightRow = Direction::kTaps * kLanes;
  const Axis& columns = geometry.columns;
  const Range interior = geometry.interior;
  const Taps taps = Direction::TapsOf(geometry.rows, y);
  Row row = {.in = {},
             .weight = weight + taps.tap * kWeightRow,
             .weight_step = taps.tap_step * kWeightRow,
             .count = taps.count,
             .out = out};
  for (int64_t n = 0; n < taps.count; ++n) row.in[n] = in->At(taps.first + n * taps.step);
  WriteEdge<Direction>(row, columns, 0, interior.begin, epilogue);
  int64_t x = interior.begin, input = Direction::FirstInput(columns, x);
  ahead.Fetch(0, interior.begin);
  for (; x + kGroup <= interior.end; x += kGroup, input += kSteps * Direction::kInputs) {
    ahead.Fetch(x, kGroup);
    WriteGroup<Direction, kSteps>(row, input, x, epilogue);
  }
  ahead.Fetch(x, Direction::Outputs(columns) - x);
  WriteRest<Direction, kSteps - 1>(row, input, x, (interior.end - x) / Direction::kOutputs,
                                   epilogue);
  WriteEdge<Direction>(row, columns, interior.end, Direction::Outputs(columns), epilogue);
}

}  // namespace ringtail::RT_KERNEL_ISA::depthwise

#endif  // RINGTAIL_LAYERS_KERNELS_DEPTHWISE_TAPS_H_
