// How a rank's clock differs from rank 0's, from messages there and back, as NTP does it (D. L.
// Mills, RFC 5905, section 8):
//
//     rank 0   --------- t1 == t2 ---------->     offset = ((t1 - t0) + (t2 - t3)) / 2
//                      /         \                round trip = (t3 - t0) - (t2 - t1)
//     rank r   ----- t0           t3 ------->     error <= round trip / 2
//
// The formula assumes that both directions take equally long. If they do not, it is wrong by half
// of the difference, and so never by more than half of the round trip: the shortest of several
// round trips is the most accurate.
//
// Clocks also run at different rates, some 10 us per second (ClockMap): for a trace of minutes, one
// offset would be wrong by milliseconds, so there is one from its beginning and one from its end.
#ifndef RINGTAIL_DIST_TRACE_CLOCK_OFFSET_H_
#define RINGTAIL_DIST_TRACE_CLOCK_OFFSET_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "core/status.h"
#include "dist/trace/waiting_messages.h"

namespace ringtail {

using NanosecondClock = std::function<int64_t()>;
// No clock shows more (36 years), and no sum of four such times overflows.
inline constexpr int64_t kLatestTimeNs = int64_t{1} << 60;

struct ClockOffset {
  int64_t at_ns = 0;      // this rank's clock at that time
  int64_t offset_ns = 0;  // this rank's clock plus this is rank 0's
  int64_t error_ns = 0;   // at most
};

// From one round trip; none if no clocks can have shown these times.
std::optional<ClockOffset> OffsetOfRoundTrip(int64_t t0, int64_t t1, int64_t t2, int64_t t3);

// A collective: every rank calls it, and each but rank 0 makes kRoundTrips with rank 0, one rank
// after the other, so that they do not delay each other. Takes some ms per rank.
inline constexpr int kRoundTrips = 32;
StatusOr<ClockOffset> MeasureClockOffset(WaitingMessages* messages, const NanosecondClock& clock);

// Rank 0's time of a time of this rank, between two measurements.
class ClockMap {
 public:
  ClockMap(const ClockOffset& begin, const ClockOffset& end);

  // The time of this rank when it is `rank_zero_ns` by rank 0's clock.
  int64_t TimeHere(int64_t rank_zero_ns) const;
  // How long a nanosecond of this rank is by rank 0's clock.
  double rate() const { return rate_; }
  int64_t error_ns() const { return error_ns_; }

 private:
  ClockOffset from_;
  double rate_ = 1;
  int64_t error_ns_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRACE_CLOCK_OFFSET_H_
