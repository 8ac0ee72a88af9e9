// Fingerprint: what must be the same on every rank for their sums to mean anything (network, batch,
// seed, data list, build, instruction set, ...), as names and values; values that are long go in as
// a hash. Compared before the first step, because afterwards nothing fails: it just learns wrong.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_MEMBERSHIP_FINGERPRINT_H_
#define RINGTAIL_DIST_MEMBERSHIP_FINGERPRINT_H_

#include <optional>
#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

struct FingerprintField {
  std::string name, value;  // "train.batch", "64"

  bool operator==(const FingerprintField&) const = default;
};
using FingerprintFields = std::vector<FingerprintField>;

inline constexpr size_t kMaxFieldNameBytes = 128, kMaxFieldValueBytes = 4096;
inline constexpr size_t kMaxFields = 1024;

// InvalidArgument: too many, too long, or a name that occurs twice.
Status CheckFields(const FingerprintFields& fields);

struct Disagreement {
  std::string name;
  std::string expected, found;      // "(none)" where there is no such field
  std::vector<std::string> others;  // names of the other fields that differ
};

// The first field, in the order of `expected`, that differs, is missing or is not expected. In
// which order the fields stand in `found` does not matter.
std::optional<Disagreement> CompareFingerprints(const FingerprintFields& expected,
                                                const FingerprintFields& found);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_FINGERPRINT_H_
