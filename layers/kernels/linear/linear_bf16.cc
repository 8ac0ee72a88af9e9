#include "layers/kernels/linear/linear_bf16.h"

#ifdef __AVX512F__
#include <immintrin.h>

#include "layers/kernels/bf16/bf16_dot.h"
#include "layers/kernels/clamp.h"
#include "layers/kernels/integers.h"
#endif

namespace ringtail::RT_KERNEL_ISA {

#ifdef __AVX512F__

namespace {

constexpr int64_t kBlock = kLanes;     // rows or columns of a tile
constexpr int64_t kGroup = kBf16Pair;  // numbers that are multiplied together
constexpr int64_t kTile = kBlock * kBlock;

// A row of weights is far from the one before, and too short for the processor to guess what comes
// next: it is asked for while others are packed, and comes while they are multiplied with. Beyond the
// end of the matrix that does nothing.
constexpr int64_t kRowsAhead = 16;
template <int kNumbers, typename Element>
[[gnu::always_inline]] static inline void Fetch(const Element* p) {
  constexpr int kLine = 64 / sizeof(Element);
#pragma GCC unroll 2
  for (int i = 0; i < kNumbers; i += kLine) __builtin_prefetch(p + i, /*rw=*/0, /*locality=*/2);
}

// The first `count` lanes; none where it is not positive.
[[gnu::always_inline]] static inline __mmask16 First16(int64_t count) {
  if (count >= kLanes) return 0xffff;
  return count <= 0 ? 0 : static_cast<__mmask16>((1U << count) - 1);
}
[[gnu::always_inline]] static inline __mmask32 First32(int64_t count) {
  if (count >= kBf16Pair) return 0xffffffff;
  return count <= 0 ? 0 : (1U << count) - 1;
}

[[gnu::always_inline]] static inline Vec LoadFirst(const float* p, int64_t count) {
  return reinterpret_cast<Vec>(_mm512_maskz_loadu_ps(First16(count), p));
}

// 32 numbers of a row, of which `count` are there.
[[gnu::always_inline]] static inline __m512i LoadGroup(const float* p, int64_t count) {
  if (count >= kGroup) return RoundTwo(Load(p), Load(p + kLanes));
  return RoundTwo(LoadFirst(p, count), LoadFirst(p + kLanes, count - kLanes));
}
[[gnu::always_inline]] static inline __m512i LoadGroup(const Bfloat16* p, int64_t count) {
  return _mm512_maskz_loadu_epi16(First32(count), p);
}

// 16 numbers of each of two rows, of which `first` and `second` are there: those of the first row,
// then those of the second.
[[gnu::always_inline]] static inline __m512i LoadTwoRows(const float* p, int64_t stride,
                                                         int64_t first, int64_t second) {
  return RoundTwo(LoadFirst(p, first), LoadFirst(p + stride, second));
}
[[gnu::always_inline]] static inline __m512i LoadTwoRows(const Bfloat16* p, int64_t stride,
                                                         int64_t first, int64_t second) {
  const __m256i low = _mm256_maskz_loadu_epi16(First16(first), p);
  const __m256i high = _mm256_maskz_loadu_epi16(First16(second), p + stride);
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

// Numbers `row` and `row + 1` of 16 columns, side by side.
template <typename Element>
[[gnu::always_inline]] static inline __m512i LoadPair(const MatrixPart<const Element>& from,
                                                      __m512i order, int64_t row, int64_t column) {
  const int64_t columns = from.columns - column;
  return Interleaved(order,
                     LoadTwoRows(from.at + row * from.stride + column, from.stride,
                                 row < from.rows ? columns : 0, row + 1 < from.rows ? columns : 0));
}

[[gnu::always_inline]] static inline void StoreFirst(float* p, Vec v, int64_t count) {
  _mm512_mask_storeu_ps(p, First16(count), reinterpret_cast<__m512>(v));
}
[[gnu::always_inline]] static inline void StoreFirst(Bfloat16* p, Vec v, int64_t count) {
  _mm256_mask_storeu_epi16(p, First16(count), RoundOne(v));
}

}  // namespace

template <typename Element>
void PackRows(const MatrixPart<const Element>& from, int64_t to_rows, int64_t to_columns,
              int64_t to_stride, Bfloat16* to) {
  for (int64_t row = 0; row < to_rows; ++row) {
    const Element* const p = from.at + row * from.stride;
    const int64_t columns = row < from.rows ? from.columns : 0;
    for (int64_t c = 0; c < to_columns; c += kGroup) {
      Fetch<kGroup>(p + kRowsAhead * from.stride + c);
      _mm512_storeu_si512(to + row * to_stride + c, LoadGroup(p + c, columns - c));
    }
  }
}

template <typename Element>
void PackColumnsAsRows(const MatrixPart<const Element>& from, int64_t to_numbers, int64_t to_stride,
                       Bfloat16* to) {
  const __m512i order = PairIndex();
  for (int64_t column = 0; column < from.columns; column += kBlock) {
    for (int64_t row = 0; row < to_numbers; row += kGroup) {
      Vec pairs[kBlock];  // [pair of rows][column], then [column][pair of rows]
#pragma GCC unroll 16
      for (int64_t i = 0; i < kBlock; ++i) {
        pairs[i] = reinterpret_cast<Vec>(LoadPair(from, order, row + 2 * i, column));
      }
      TransposeRows(pairs);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kBlock; ++i) {
        _mm512_storeu_ps(to + (column + i) * to_stride + row, reinterpret_cast<__m512>(pairs[i]));
      }
    }
  }
}

template <typename Element>
void PackColumns(const MatrixPart<const Element>& from, int64_t to_numbers, int64_t to_block_stride,
                 Bfloat16* to) {
  const __m512i order = PairIndex();
  for (int64_t row = 0; row < to_numbers; row += 2) {
    const Element* const ahead = from.at + (row + kRowsAhead) * from.stride;
    Bfloat16* block = to + row * kBlock;
    for (int64_t column = 0; column < from.columns; column += kBlock, block += to_block_stride) {
      Fetch<kBlock>(ahead + column);
      Fetch<kBlock>(ahead + from.stride + column);
      _mm512_storeu_si512(block, LoadPair(from, order, row, column));
    }
  }
}

template <typename Element>
void PackRowsAsColumns(const MatrixPart<const Element>& from, Bfloat16* to) {
  for (int64_t column = 0; column < from.columns; column += kGroup, to += kGroup * kBlock) {
    Vec pairs[kBlock];  // [row][pair], then [pair][row]
#pragma GCC unroll 16
    for (int64_t i = 0; i < kBlock; ++i) {
      const int64_t columns = i < from.rows ? from.columns - column : 0;
      pairs[i] = reinterpret_cast<Vec>(LoadGroup(from.at + i * from.stride + column, columns));
    }
    TransposeRows(pairs);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kBlock; ++i) {
      _mm512_storeu_ps(to + i * kGroup, reinterpret_cast<__m512>(pairs[i]));
    }
  }
}

template <typename Element>
void StoreTiles(const float* sums, bool stream, const MatrixPart<Element>& to) {
  for (int64_t row = 0; row < to.rows; ++row) {
    const float* from = sums + row * kBlock;
    Element* const p = to.at + row * to.stride;
    for (int64_t column = 0; column < to.columns; column += kBlock, from += kTile) {
      if constexpr (sizeof(Element) == sizeof(float)) {
        if (stream) {
          StoreStreaming(p + column, Load(from));
          continue;
        }
      }
      StoreFirst(p + column, Load(from), to.columns - column);
    }
  }
}

void FinishTileStreams() { FinishStreaming(); }

template <typename Element>
void StoreTransposedTiles(const TileOutputs& from, const MatrixPart<Element>& to) {
  const Vec bias = from.bias != nullptr ? LoadFirst(from.bias, to.columns) : Vec{};
  const Vec low = Broadcast(from.low), high = Broadcast(from.high);
  for (int64_t first = 0; first < to.rows; first += kBlock) {
    Vec rows[kBlock];
    LoadTransposed(from.sums + first * kBlock, kBlock, rows);
    const int64_t count = Min(kBlock, to.rows - first);
    for (int64_t i = 0; i < count; ++i) {
      StoreFirst(to.at + (first + i) * to.stride, Clamped(rows[i] + bias, low, high), to.columns);
    }
  }
}

#else

template <typename Element>
void PackRows(const MatrixPart<const Element>&, int64_t, int64_t, int64_t, Bfloat16*) {
  __builtin_trap();
}
template <typename Element>
void PackColumnsAsRows(const MatrixPart<const Element>&, int64_t, int64_t, Bfloat16*) {
  __builtin_trap();
}
template <typename Element>
void PackColumns(const MatrixPart<const Element>&, int64_t, int64_t, Bfloat16*) {
  __builtin_trap();
}
template <typename Element>
void PackRowsAsColumns(const MatrixPart<const Element>&, Bfloat16*) {
  __builtin_trap();
}
template <typename Element>
void StoreTiles(const float*, bool, const MatrixPart<Element>&) {
  __builtin_trap();
}
void FinishTileStreams() { __builtin_trap(); }
template <typename Element>
void StoreTransposedTiles(const TileOutputs&, const MatrixPart<Element>&) {
  __builtin_trap();
}

#endif

template void PackRows(const MatrixPart<const float>&, int64_t, int64_t, int64_t, Bfloat16*);
template void PackRows(const MatrixPart<const Bfloat16>&, int64_t, int64_t, int64_t, Bfloat16*);
template void PackColumnsAsRows(const MatrixPart<const float>&, int64_t, int64_t, Bfloat16*);
template void PackColumnsAsRows(const MatrixPart<const Bfloat16>&, int64_t, int64_t, Bfloat16*);
template void PackColumns(const MatrixPart<const float>&, int64_t, int64_t, Bfloat16*);
template void PackColumns(const MatrixPart<const Bfloat16>&, int64_t, int64_t, Bfloat16*);
template void PackRowsAsColumns(const MatrixPart<const float>&, Bfloat16*);
template void PackRowsAsColumns(const MatrixPart<const Bfloat16>&, Bfloat16*);
template void StoreTiles(const float*, bool, const MatrixPart<float>&);
template void StoreTiles(const float*, bool, const MatrixPart<Bfloat16>&);
template void StoreTransposedTiles(const TileOutputs&, const MatrixPart<float>&);
template void StoreTransposedTiles(const TileOutputs&, const MatrixPart<Bfloat16>&);

}  // namespace ringtail::RT_KERNEL_ISA
