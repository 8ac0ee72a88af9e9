// A heartbeat: what a rank tells every other rank once in a while, of itself.
//
//   byte 0           4    5    6         8
//        +-----------+----+----+---------+-------------------+
//      0 | "RTH1"    |phas|last| 0       | sequence          |
//        +-----------+----+----+---------+-------------------+
//     16 | step                          | counter           |
//        +-------------------------------+-------------------+
//     32 | ms since the counter changed  | us of a step      |
//        +-------------------------------+-------------------+
//     48 | us of a step's computing      |
//        +-------------------------------+
//
// Little-endian. Times are by the sender's clock and lengths of time, so that the ranks' clocks
// need not agree. Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_LIVENESS_HEARTBEAT_H_
#define RINGTAIL_DIST_LIVENESS_HEARTBEAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "dist/liveness/progress.h"

namespace ringtail {

struct Heartbeat {
  uint64_t sequence = 0;  // 0, 1, ... between two ranks in one direction
  Phase phase = Phase::kSetUp;
  bool last = false;  // the rank ends in good order; no more will come
  uint64_t step = 0;
  uint64_t counter = 0;       // Progress
  uint64_t unchanged_ms = 0;  // for so long
  // Medians of the rank's last steps (step_times.h); 0: not known yet.
  uint64_t step_us = 0;
  uint64_t compute_us = 0;
};

inline constexpr size_t kHeartbeatBytes = 56;

std::array<std::byte, kHeartbeatBytes> EncodeHeartbeat(const Heartbeat& heartbeat);
// DataLoss for what no rank sends.
StatusOr<Heartbeat> DecodeHeartbeat(std::span<const std::byte, kHeartbeatBytes> bytes);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_HEARTBEAT_H_
