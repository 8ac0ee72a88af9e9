// A heartbeat: what a rank tells every other rank once in a while, of itself.
//
//   byte 0           4    5    6         8
//        +-----------+----+----+---------+-------------------------------+
//      0 | "RTH2"    |phas|last| 0       | sequence                      |
//        +-----------+----+----+---------+-------------------------------+
//     16 | step                          | counter                       |
//        +-------------------------------+-------------------------------+
//     32 | ms since the counter changed  | us of a step                  |
//        +-------------------------------+-------------------------------+
//     48 | us of a step's computing      | pieces of data moved          |
//        +---------------+---------------+---------------+---------------+
//     64 | beats: rank 0 | rank 1        | ...           | the last rank |
//        +---------------+---------------+---------------+---------------+
//
// Each rank counts its own beats, and tells of every other the latest that it knows of, from that
// rank or from a third: to hear one rank is to hear of all ranks that it hears. It is a count and
// not a time, so that news which has been under way for long does not look new. Of a rank that the
// sender has lost, and continues without, it says kLostBeat (loss_judge.h).
//
// Little-endian. Times are by the sender's clock and lengths of time, so that the ranks' clocks
// need not agree. Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_LIVENESS_HEARTBEAT_H_
#define RINGTAIL_DIST_LIVENESS_HEARTBEAT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "dist/liveness/progress.h"

namespace ringtail {

inline constexpr uint32_t kLostBeat = UINT32_MAX;

struct Heartbeat {
  uint64_t sequence = 0;  // 0, 1, ... between two ranks in one direction, on one lane
  Phase phase = Phase::kSetUp;
  bool last = false;  // the rank ends in good order; no more will come
  uint64_t step = 0;
  uint64_t counter = 0;       // Progress
  uint64_t unchanged_ms = 0;  // for so long
  // Medians of the rank's last steps (step_times.h); 0: not known yet.
  uint64_t step_us = 0;
  uint64_t compute_us = 0;
  uint64_t moved = 0;           // Traffic::sent and received, with all peers
  std::vector<uint32_t> beats;  // by rank, this one too: the latest that is known; 0: none
};

// In a world of so many ranks.
constexpr size_t HeartbeatBytes(size_t world_size) { return 64 + 4 * world_size; }

// HeartbeatBytes(heartbeat.beats.size()) of them.
std::vector<std::byte> EncodeHeartbeat(const Heartbeat& heartbeat);
// DataLoss for what no rank sends.
StatusOr<Heartbeat> DecodeHeartbeat(std::span<const std::byte> bytes);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_HEARTBEAT_H_
