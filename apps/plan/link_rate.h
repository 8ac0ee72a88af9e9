// Rates of links and lists of hosts as people write them: "1gbit", "100 Mbit/s"; "8", "1..32".
// Thread-safety: functions without state. Errors: InvalidArgument with examples.
#ifndef RINGTAIL_APPS_PLAN_LINK_RATE_H_
#define RINGTAIL_APPS_PLAN_LINK_RATE_H_

#include <string_view>
#include <utility>

#include "core/status.h"

namespace ringtail {

// Of what a link carries, headers of Ethernet, IP and TCP leave this for messages (frames of 1500
// bytes: 1448 of 1526).
inline constexpr double kWireEfficiency = 0.949;

// Bits per second: kbit, mbit, gbit (also with capitals, a space, "/s"), 1 kbit/s to 10 Tbit/s.
StatusOr<double> ParseBitRate(std::string_view text);
// Least and most: "8" is 8 and 8. 1 .. 1024.
StatusOr<std::pair<int, int>> ParseHosts(std::string_view text);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_LINK_RATE_H_
