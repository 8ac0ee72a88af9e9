#include "dist/transport/frames/control_payload.h"

#include <limits>
#include <span>
#include <string_view>

#include "core/storage/crc32c.h"
#include "core/text/utf8.h"
#include "dist/transport/frames/keyed_hash.h"
#include "dist/transport/transport.pb.h"

namespace ringtail {
namespace {

constexpr size_t kMaxMessageBytes = kMaxControlPayloadBytes - 64;

bool IsErrorCode(uint32_t code) {
  return code != 0 && code <= static_cast<uint32_t>(StatusCode::kDataLoss) &&
         StatusCodeName(static_cast<StatusCode>(code)) != "Unknown";
}

}  // namespace

std::string HelloProof(const std::string& secret, uint32_t generation, const Hello& hello) {
  if (secret.empty()) return {};
  return KeyedHash(secret, {hello.urgent ? "urgent hello" : "hello", std::to_string(generation),
                            std::to_string(hello.rank), std::to_string(hello.peer),
                            std::to_string(hello.world_size)});
}

std::string HelloPayload(const Hello& hello) {
  TransportHello message;
  message.set_rank(hello.rank);
  message.set_peer(hello.peer);
  message.set_world_size(hello.world_size);
  message.set_urgent(hello.urgent);
  message.set_proof(hello.proof);
  return message.SerializeAsString();
}

StatusOr<Hello> ParseHello(const std::string& payload) {
  TransportHello message;
  constexpr uint32_t kMax = std::numeric_limits<int>::max();
  if (!message.ParseFromString(payload) || message.rank() > kMax || message.peer() > kMax ||
      message.world_size() > kMax) {
    return DataLoss("a hello that cannot be read");
  }
  return Hello{.rank = static_cast<int>(message.rank()),
               .peer = static_cast<int>(message.peer()),
               .world_size = static_cast<int>(message.world_size()),
               .urgent = message.urgent(),
               .proof = message.proof()};
}

std::string AbortPayload(const Status& cause) {
  TransportAbort message;
  message.set_code(static_cast<uint32_t>(cause.code()));
  const std::string_view text = std::string_view(cause.message()).substr(0, kMaxMessageBytes);
  message.set_message(std::string(text.substr(0, ValidUtf8Prefix(text))));
  return message.SerializeAsString();
}

Status ParseAbort(const std::string& payload) {
  TransportAbort message;
  if (!message.ParseFromString(payload) || !IsErrorCode(message.code())) {
    return DataLoss("an abort that cannot be read");
  }
  return {static_cast<StatusCode>(message.code()), message.message()};
}

StatusOr<std::string> ReadControlPayload(const FrameHeader& header, ByteCursor* bytes) {
  std::string payload(header.payload_bytes, '\0');
  const std::span<std::byte> memory = std::as_writable_bytes(std::span(payload));
  if (!bytes->Read(memory)) return DataLoss("a frame that ends before its payload");
  if (Crc32c(memory) != header.payload_crc) {
    return DataLoss("a frame whose payload does not have its checksum");
  }
  return payload;
}

}  // namespace ringtail
