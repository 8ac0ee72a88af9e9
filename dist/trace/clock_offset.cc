#include "dist/trace/clock_offset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace ringtail {
namespace {

// Clocks that differ by more than this are broken; their offset is taken as it is.
constexpr double kMaxDrift = 1e-3;

Status AnswerRank(WaitingMessages* messages, int rank, const NanosecondClock& clock) {
  for (int i = 0; i < kRoundTrips; ++i) {
    RT_RETURN_IF_ERROR(messages->Receive(rank, {}));
    std::array<int64_t, 2> answer;  // t1, t2
    answer[0] = clock();
    answer[1] = clock();
    RT_RETURN_IF_ERROR(messages->Send(rank, std::as_bytes(std::span(answer))));
  }
  return {};
}

}  // namespace

std::optional<ClockOffset> OffsetOfRoundTrip(int64_t t0, int64_t t1, int64_t t2, int64_t t3) {
  for (const int64_t time : {t0, t1, t2, t3}) {
    if (time < -kLatestTimeNs || time > kLatestTimeNs) return {};
  }
  const int64_t there = t3 - t0, answering = t2 - t1;
  if (answering < 0 || answering > there) return {};
  return ClockOffset{.at_ns = t0 + there / 2,
                     .offset_ns = ((t1 - t0) + (t2 - t3)) / 2,
                     .error_ns = (there - answering + 1) / 2};
}

StatusOr<ClockOffset> MeasureClockOffset(WaitingMessages* messages, const NanosecondClock& clock) {
  if (messages->rank() == 0) {
    for (int rank = 1; rank < messages->world_size(); ++rank) {
      const Status answered = AnswerRank(messages, rank, clock);
      if (!answered.ok() && !messages->Lost(rank)) return answered;
    }
    return ClockOffset{.at_ns = clock()};
  }
  std::optional<ClockOffset> best;
  for (int i = 0; i < kRoundTrips; ++i) {
    std::array<int64_t, 2> answer;
    const int64_t t0 = clock();
    RT_RETURN_IF_ERROR(messages->Send(0, {}));
    RT_RETURN_IF_ERROR(messages->Receive(0, std::as_writable_bytes(std::span(answer))));
    const auto offset = OffsetOfRoundTrip(t0, answer[0], answer[1], clock());
    if (offset && (!best || offset->error_ns < best->error_ns)) best = offset;
  }
  if (!best) return DataLoss("rank 0 tells times that no clock can have shown");
  return *best;
}

ClockMap::ClockMap(const ClockOffset& begin, const ClockOffset& end)
    : from_(begin.error_ns <= end.error_ns ? begin : end), error_ns_(from_.error_ns) {
  const int64_t change = end.offset_ns - begin.offset_ns, time = end.at_ns - begin.at_ns;
  // What may be the measurements' error is not taken for a rate.
  if (time <= 0 || std::abs(change) <= begin.error_ns + end.error_ns) return;
  const double drift = static_cast<double>(change) / static_cast<double>(time);
  if (std::abs(drift) > kMaxDrift) return;
  rate_ = 1 + drift;
  error_ns_ = std::max(begin.error_ns, end.error_ns);
}

int64_t ClockMap::TimeHere(int64_t rank_zero_ns) const {
  const int64_t since = rank_zero_ns - (from_.at_ns + from_.offset_ns);
  return from_.at_ns + std::llround(static_cast<double>(since) / rate_);
}

}  // namespace ringtail
