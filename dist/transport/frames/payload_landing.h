// PayloadLanding: the payload of a frame goes to the destination of its message, and its checksum
// is computed on the way, in blocks that stay in the first-level cache: each byte comes from memory
// once and goes there once, also if it is added up (Combine).
//
//   pieces that were read ── 12 KiB where they lie ── CRC-32C ── combine ──> the Receive's memory
//                         ── 12 KiB ──> a copy ────── CRC-32C ── combine ──> (in several pieces)
//                         ── 12 KiB ──> the Receive's memory ── CRC-32C      (without combine)
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_TRANSPORT_FRAMES_PAYLOAD_LANDING_H_
#define RINGTAIL_DIST_TRANSPORT_FRAMES_PAYLOAD_LANDING_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "dist/transport/frames/byte_cursor.h"
#include "dist/transport/transport.h"

namespace ringtail {

// Chunks of a message, but for the last, are multiples of it: no element is cut in two.
inline constexpr size_t kChunkAlignment = 64;

// Reads as many bytes as `to` has, of which there are enough. Returns their checksum, or 0 if none
// is wanted.
uint32_t LandPayload(ByteCursor* bytes, const ReceiveBuffer& to, bool checksum);

// The same for bytes that lie in one piece.
void Land(std::span<const std::byte> message, const ReceiveBuffer& to);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_FRAMES_PAYLOAD_LANDING_H_
