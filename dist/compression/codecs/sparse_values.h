// The values of sparse entries (sparse_entries.h), in one of its formats.
//
//   kFloat, kHalf, kBfloat16     | value | value | .. | zeros |
//   kLevels4, kLevels8           | least, u16 | most, u16 | sign, level | sign, level | .. | zeros |
//                                  magnitude_levels.h       lowest bit first
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_SPARSE_VALUES_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_SPARSE_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"

namespace ringtail {

enum class ValueFormat { kFloat, kHalf, kBfloat16, kLevels4, kLevels8 };

const char* ValueFormatName(ValueFormat format);  // "f32", "f16", "bf16", "4 levels", "8 levels"

// Of `capacity` values.
int64_t SparseValueBytes(ValueFormat format, int64_t capacity);

// The smallest magnitude (magnitude.h) that the format sends beside a's largest at `places`: 2^-100,
// and with levels their range.
uint32_t LeastSent(ValueFormat format, std::span<const float> a, std::span<const int32_t> places);

// Into zeros that start at a multiple of 4 bytes. All values reach LeastSent.
void WriteValues(ValueFormat format, std::span<const float> values, std::span<std::byte> to);

// The first values.size(). DataLoss if WriteValues cannot have written these bytes.
Status ReadValues(ValueFormat format, std::span<const std::byte> from, std::span<float> values);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_SPARSE_VALUES_H_
