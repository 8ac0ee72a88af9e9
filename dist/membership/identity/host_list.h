// Slurm's way of writing many host names in a short word:
//
//   n[1-3,07-08],gpu,r[1-2]c[1-2]   ->   n1 n2 n3 n07 n08 gpu r1c1 r1c2 r2c1 r2c2
//
// A range counts as its first number is written: with leading zeros, all get as many digits.
// The text comes from outside: whatever it says, no more is made than kMaxHosts names.
// Thread-safety: a function without state. Cost: the length of the result.
// Source: hostlist expressions of slurm.conf(5) and `scontrol show hostnames`.
#ifndef RINGTAIL_DIST_MEMBERSHIP_IDENTITY_HOST_LIST_H_
#define RINGTAIL_DIST_MEMBERSHIP_IDENTITY_HOST_LIST_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace ringtail {

inline constexpr size_t kMaxHosts = 1 << 16;
inline constexpr size_t kMaxHostListBytes = 1 << 20;
inline constexpr size_t kMaxHostNameBytes = 253;  // of a DNS name

// At least one name; InvalidArgument with the place in `text` if it is none of the above.
StatusOr<std::vector<std::string>> ExpandHostList(std::string_view text);

// Letters, digits, '-', '_', '.', and ':' for IPv6: nothing that a shell or ssh takes for
// something else.
bool IsHostName(std::string_view name);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_IDENTITY_HOST_LIST_H_
