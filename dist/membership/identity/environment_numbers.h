// Variables of the environment, read strictly: an error names the variable and its value. An empty
// variable counts as one that is not there. Private to dist/membership/.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_MEMBERSHIP_IDENTITY_ENVIRONMENT_NUMBERS_H_
#define RINGTAIL_DIST_MEMBERSHIP_IDENTITY_ENVIRONMENT_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dist/membership/identity/rank_environment.h"

namespace ringtail {

std::optional<std::string> ReadText(const Environment& environment, const std::string& name);

// Digits only, from `least` to `most`.
StatusOr<std::optional<int64_t>> ReadNumber(const Environment& environment, const std::string& name,
                                            int64_t least, int64_t most);

std::optional<int64_t> ParseDigits(std::string_view text);  // at most 18 of them

struct MasterAddress {
  std::string host;
  int port = 0;  // 0: not said
};
// "HOST", "HOST:PORT", "[IPV6]:PORT", "IPV6". `name` is the flag or variable, for errors.
StatusOr<MasterAddress> ParseMaster(const std::string& name, const std::string& text);

// Where rank 0 is according to flags and environment, whatever has started us; empty host: not
// said.
StatusOr<MasterAddress> ReadMaster(const RankFlags& flags, const Environment& environment);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_IDENTITY_ENVIRONMENT_NUMBERS_H_
