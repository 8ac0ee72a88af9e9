// What one message of messages.h is on a transport: up to three of its messages, under one number.
//
//   step 0   the header, 68 bytes
//   step 1   what it announces         left out if it announces nothing
//   step 2   running statistics        left out unless it says so
//
// Thread-safety: functions without state; an OutgoingMessage is kept until its last part is sent.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_MESSAGE_PARTS_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_MESSAGE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dist/channel.h"
#include "dist/parameter_server/wire/buffer_pool.h"
#include "dist/parameter_server/wire/messages.h"
#include "dist/transport/transport.h"

namespace ringtail {

enum class MessagePart : uint32_t { kHeader, kBytes, kStatistics };

inline MessageLabel LabelOf(Channel channel, uint64_t number, MessagePart part) {
  return {.tag = {.collective = channel.FirstCollective() + number,
                  .step = static_cast<uint32_t>(part)},
          .check = static_cast<uint64_t>(part)};
}

inline std::span<std::byte> AllBytes(const SharedBuffer& buffer) {
  return {buffer->data(), buffer->size_bytes()};
}

struct OutgoingMessage {
  EncodedMessage header;
  SharedBuffer bytes, statistics;  // null: none
};

inline size_t PartsOf(const OutgoingMessage& message) {
  return 1 + (message.bytes != nullptr ? 1 : 0) + (message.statistics != nullptr ? 1 : 0);
}

// Starts to send all parts; `done`: a target for each.
inline void SendParts(Transport* transport, int peer, Channel channel, uint64_t number,
                      const OutgoingMessage& message, std::span<const CompletionTarget> done) {
  transport->Send(peer, LabelOf(channel, number, MessagePart::kHeader), message.header, done[0]);
  if (message.bytes != nullptr) {
    transport->Send(peer, LabelOf(channel, number, MessagePart::kBytes), AllBytes(message.bytes),
                    done[1]);
  }
  if (message.statistics != nullptr) {
    transport->Send(peer, LabelOf(channel, number, MessagePart::kStatistics),
                    AllBytes(message.statistics), done.back());
  }
}

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_MESSAGE_PARTS_H_
