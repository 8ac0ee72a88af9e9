// SharedMemoryOffer: the part of a segment that a peer may map: its ring to the rank that offers.
// Sent as a fixed record (dist/wire_record.h); what comes from a peer is not believed
// (PeerMemory::Map).
//
//   byte 0       4       8               16
//        +-------+-------+---------------+
//      0 | offer?| file  | pid           |
//     16 | key                           |
//     32 | offset        | ring bytes    |
//        +---------------+---------------+
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_MEMORY_OFFER_H_
#define RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_MEMORY_OFFER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dist/transport/shared_memory/shared_segment.h"

namespace ringtail {

struct SharedMemoryOffer {
  SegmentName segment;
  uint64_t offset = 0;
  uint64_t ring_bytes = 0;

  bool operator==(const SharedMemoryOffer&) const = default;
};

inline constexpr size_t kOfferBytes = 48;

// None: this rank has nothing to offer.
std::array<std::byte, kOfferBytes> EncodeOffer(const std::optional<SharedMemoryOffer>& offer);
std::optional<SharedMemoryOffer> DecodeOffer(std::span<const std::byte, kOfferBytes> record);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_MEMORY_OFFER_H_
