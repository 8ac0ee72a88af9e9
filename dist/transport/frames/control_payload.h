// The payloads of kHello, kAbort and kGiveUp frames (dist/transport/transport.proto), made and read.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_TRANSPORT_FRAMES_CONTROL_PAYLOAD_H_
#define RINGTAIL_DIST_TRANSPORT_FRAMES_CONTROL_PAYLOAD_H_

#include <cstdint>
#include <string>

#include "core/status.h"
#include "dist/transport/frames/byte_cursor.h"
#include "dist/transport/frames/frame.h"

namespace ringtail {

struct Hello {
  int rank = 0, peer = 0, world_size = 0;
  bool urgent = false;  // of the pair's second stream (grpc_transport.h)
  std::string proof;
};

// Proves that the sender of `hello` knows the secret of `generation`. Valid only from `rank` to
// `peer`, so that it cannot be sent back. Empty if there is no secret.
std::string HelloProof(const std::string& secret, uint32_t generation, const Hello& hello);

std::string HelloPayload(const Hello& hello);
StatusOr<Hello> ParseHello(const std::string& payload);

// Long messages are cut, so that they fit.
std::string AbortPayload(const Status& cause);
// The cause; DataLoss if the payload does not have one.
Status ParseAbort(const std::string& payload);

// The payload that `header` announces, checked against its checksum. `header` is of kind kHello,
// kAbort or kGiveUp, so that the payload is small.
StatusOr<std::string> ReadControlPayload(const FrameHeader& header, ByteCursor* bytes);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_FRAMES_CONTROL_PAYLOAD_H_
