// Sparse entries: some elements of a gradient with their places, as top-k and DGC send them.
//
//   byte 0          4 c                4 c + v c        c  capacity: room for entries
//   | places, i32   | values           |                v  bytes of a value: 4, or 2 (f16, bf16)
//   | 3 | 17 | 40 | 0.5 | -2.25 | 0.75 |                c = 3
//
//   the same with v = 2, byte by byte, places | values:
//     f16     03 00 00 00  11 00 00 00  28 00 00 00 | 00 38  80 c0  00 3a
//     bf16    03 00 00 00  11 00 00 00  28 00 00 00 | 00 3f  10 c0  40 3f
//
// Places ascend strictly. Unused entries, at the end of both parts, are zero bytes.
// Everything is little-endian; values of 16 bits are rounded as kernels/cast.h says.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_SPARSE_ENTRIES_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_SPARSE_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/status.h"

namespace ringtail {

enum class ValueFormat { kFloat, kHalf, kBfloat16 };

const char* ValueFormatName(ValueFormat format);  // "f32", "f16", "bf16"

struct SparseLayout {
  int64_t capacity = 0;
  ValueFormat format = ValueFormat::kFloat;

  int64_t value_bytes() const { return format == ValueFormat::kFloat ? 4 : 2; }
  int64_t bytes() const { return capacity * (4 + value_bytes()); }
};

// Writes all layout.bytes() of `to`: the elements of `a` at `places`, of which there are at most
// `capacity`.
void WriteEntries(const SparseLayout& layout, std::span<const float> a,
                  std::span<const int32_t> places, std::span<std::byte> to);

// DataLoss unless `from`, which has layout.bytes(), holds `count` entries with ascending places
// below `elements`, followed by zeros.
Status CheckEntries(const SparseLayout& layout, int64_t count, int64_t elements,
                    std::span<const std::byte> from);

// Both for entries that have been checked, or written here.
// visit(place, value) for the first `count` entries, by ascending place.
void ForEachEntry(const SparseLayout& layout, int64_t count, std::span<const std::byte> from,
                  const std::function<void(int64_t place, float value)>& visit);
// sum[place] += scale * value for the first `count` entries.
void AddEntries(const SparseLayout& layout, int64_t count, std::span<const std::byte> from,
                float scale, std::span<float> sum);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_SPARSE_ENTRIES_H_
