// Frame: what a stream between two ranks is made of. A header of 64 bytes, little-endian, and the
// payload that it announces:
//
//   at  bytes
//    0  4  magic, "RTF1": the 1 is the version of the protocol
//    4  1  kind
//    5  1  flags; 1: granted
//    6  2  number of the frame among those from this rank to that, modulo 65,536; kHello: 0
//    8  4  generation of the world; another one is a rank from an earlier life of the job
//   12  4  payload bytes that follow this header
//   16  8  tag: collective
//   24  4  tag: step
//   28  4  tag: segment
//   32  8  check of the message (dist/transport/transport.h)
//   40  8  bytes of the whole message
//   48  8  offset of the payload in the message; of kCredit the bytes that are free again.
//          Payloads but the last of a message are multiples of 64 bytes
//   56  4  CRC-32C of the payload
//   60  4  CRC-32C of bytes 0 to 59
//
// The number is for what checksums cannot see: frames that are lost whole, come twice or overtake
// each other. TCP does not do that, but a bit that flips in HTTP/2's framing does: a frame of
// HTTP/2 of an unknown type is skipped, as its standard demands, with the messages in it.
//
// Parsing trusts nothing: a header is either exactly what EncodeHeader makes of some frame, or an
// error. Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_TRANSPORT_FRAMES_FRAME_H_
#define RINGTAIL_DIST_TRANSPORT_FRAMES_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "dist/transport/transport.h"

namespace ringtail {

enum class FrameKind : uint8_t {
  kHello = 1,    // the rank that dials, then the one that answers; TransportHello
  kData = 2,     // a part of a message, or all of it
  kRequest = 3,  // a message waits at the sender, because there is no credit for it
  kGrant = 4,    // its Receive is posted: send it
  kCredit = 5,   // early bytes have been taken; as many more may come
  kGoodbye = 6,  // the rank leaves in peace
  kAbort = 7,    // the rank stops; payload TransportAbort
  kGiveUp = 8,   // the rank has given this one up, which has to end; payload TransportAbort
};
inline constexpr uint8_t kLastFrameKind = 8;

struct FrameHeader {
  FrameKind kind = FrameKind::kData;
  bool granted = false;  // kData: in answer to a kGrant, not on credit
  uint16_t number = 0;
  uint32_t generation = 0;
  uint32_t payload_bytes = 0;
  MessageLabel label;
  uint64_t message_bytes = 0;
  uint64_t offset = 0;
  uint32_t payload_crc = 0;
};

inline constexpr size_t kFrameHeaderBytes = 64;
// Payloads of kHello, kAbort and kGiveUp; kinds but these and kData have none.
inline constexpr uint32_t kMaxControlPayloadBytes = 4096;

std::array<std::byte, kFrameHeaderBytes> EncodeHeader(const FrameHeader& header);

// The payload bytes that a header announces, which has not been checked yet.
uint32_t AnnouncedPayload(std::span<const std::byte, kFrameHeaderBytes> bytes);

// DataLoss if `bytes` are no header: magic, checksum, kind, flags, reserved bytes, a payload that
// the kind does not have, or one that reaches beyond its message.
StatusOr<FrameHeader> DecodeHeader(std::span<const std::byte, kFrameHeaderBytes> bytes);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_FRAMES_FRAME_H_
