// FrameReader: takes frames out of the bytes that a peer has sent. Nothing in them is believed
// before it has been checked: the header is whole, of this generation, and the next one by number.
// Thread-safety: one thread at a time.
#ifndef RINGTAIL_DIST_TRANSPORT_FRAMES_FRAME_READER_H_
#define RINGTAIL_DIST_TRANSPORT_FRAMES_FRAME_READER_H_

#include <cstdint>
#include <string_view>

#include "core/status.h"
#include "dist/transport/frames/byte_cursor.h"
#include "dist/transport/frames/frame.h"

namespace ringtail {

// DataLoss: "rank 2 does not keep to the protocol: <what> (frame of kind 2, ...)".
Status ProtocolError(int peer, std::string_view what, const FrameHeader& header);

class FrameReader {
 public:
  FrameReader(int peer, uint32_t generation) : peer_(peer), generation_(generation) {}

  // The header of the next frame; its payload is what `bytes` has next. DataLoss for bytes that are
  // no frame, or not the next one; FailedPrecondition for another generation.
  StatusOr<FrameHeader> Next(ByteCursor* bytes);

 private:
  const int peer_;
  const uint32_t generation_;
  uint16_t next_number_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_FRAMES_FRAME_READER_H_
