// Channels: what counts its collectives (MessageTag::collective) separately on one transport,
// because threads of a rank that use it at the same time must not depend on who comes first.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_CHANNEL_H_
#define RINGTAIL_DIST_CHANNEL_H_

#include <cstdint>

#include "dist/transport/transport.h"

namespace ringtail {

enum class Channel : uint32_t {
  kTrainer = 0,
  kGradients = 1,
  kProbe = 2,
  kTrace = 14,
  kHeartbeat = kHeartbeatChannel,
  kUrgentHeartbeat = kUrgentChannel
};

// The first MessageTag::collective of a channel; the next is one more.
inline uint64_t FirstCollective(Channel channel) {
  return static_cast<uint64_t>(channel) << kChannelShift;
}

}  // namespace ringtail

#endif  // RINGTAIL_DIST_CHANNEL_H_
