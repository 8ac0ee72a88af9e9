// Sparse entries: some elements of a gradient with their places, as top-k and DGC send them.
//
//   | values | upper parts of the places | lower parts |      each part ends with a whole byte
//
//   places        3, 17, 40 of n = 50, room for c = 3 entries
//   lower parts   b = 3 bits of each place                        3,  1,  0
//   upper parts   place / 8 is 0, 2 and 5, in unary: a 0 for      1 00 1 000 1
//                 each step, a 1 for each place                   bits, the first at the right:
//                                                                 10001001
//
// That is Golomb's code of the gaps between places, with Rice's power of two, its unary and binary
// parts kept apart. It takes c (b + 1) + (n - 1) / 2^b bits, however the places lie; b is what
// makes that least, so that a place costs at most 2 + log2(n / c) bits: 12.0 at density 0.001 and
// 8.7 at 0.01. (Golomb, IEEE Trans. Inf. Theory 1966; Elias, J. ACM 1974, who keeps them apart.)
//
// Values take 3 to 32 bits: sparse_values.h. Places ascend strictly. Elements that are zero, or
// below 2^-100, are not sent, and with levels nor are those below the range of the largest: error
// feedback keeps them. Unused room is zero. Numbers are little-endian.
// Thread-safety: functions without state. Cost: some nanoseconds per entry.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_SPARSE_ENTRIES_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_SPARSE_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "dist/compression/codecs/sparse_values.h"

namespace ringtail {

struct SparseLayout {
  int64_t elements = 0;  // of the gradient, below 2^31
  int64_t capacity = 0;  // room for entries, at most `elements`
  ValueFormat format = ValueFormat::kFloat;

  int low_bits() const;         // b
  int64_t value_bytes() const;  // of each of the three parts
  int64_t upper_bytes() const;
  int64_t lower_bytes() const;
  int64_t bytes() const { return value_bytes() + upper_bytes() + lower_bytes(); }
};

// Writes all layout.bytes() of `to`: the elements of `a` at `places`, which ascend and of which
// there are at most `capacity`.
void WriteEntries(const SparseLayout& layout, std::span<const float> a,
                  std::span<const int32_t> places, std::span<std::byte> to);

struct SparseEntries {
  std::vector<int32_t> places;  // ascending
  std::vector<float> values;
};
// DataLoss, with `entries` undefined, for bytes of another length or that WriteEntries cannot have
// written as far as they tell. Reuse `entries`: nothing is then allocated.
Status ReadEntries(const SparseLayout& layout, std::span<const std::byte> from,
                   SparseEntries* entries);

// The same, and adds them: sum[place] += scale * value. `sum` has layout.elements.
Status AddEntries(const SparseLayout& layout, std::span<const std::byte> from, float scale,
                  std::span<float> sum);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_SPARSE_ENTRIES_H_
