// A table of algorithms by size, as a person writes it into a config:
//
//   recursive_doubling:0-65536;ring:65536-
//
// takes recursive doubling below 65536 bytes, and a ring from there. Entries follow each other: the
// first begins at 0, each begins where the one before ends, and the last is open. Nothing else is
// accepted, not even a space: a table with a hole would only be noticed when it is too late.
#ifndef RINGTAIL_DIST_COLLECTIVES_SIZE_TABLE_H_
#define RINGTAIL_DIST_COLLECTIVES_SIZE_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "dist/collectives/algorithms.h"

namespace ringtail {

struct SizeTableEntry {
  const AllreduceAlgorithm* algorithm = nullptr;
  int64_t from_bytes = 0;
  int64_t to_bytes = 0;  // not included; of the last entry the largest number
  std::string text;      // "ring:65536-"
};

// Errors name the place: "size table, column 28: ...".
StatusOr<std::vector<SizeTableEntry>> ParseSizeTable(std::string_view text);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_SIZE_TABLE_H_
