#include "dist/parameter_server/wire/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "dist/wire_record.h"

namespace ringtail {
namespace {

constexpr uint32_t kMagic = 0x53505452;  // bytes 'R' 'T' 'P' 'S'
constexpr uint8_t kVersion = 2;
constexpr uint8_t kFinite = 1, kApplied = 2, kStatistics = 4;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;

bool IsKind(uint8_t kind) {
  return (kind >= static_cast<uint8_t>(MessageKind::kPull) &&
          kind <= static_cast<uint8_t>(MessageKind::kLost)) ||
         (kind >= static_cast<uint8_t>(MessageKind::kWeights) &&
          kind <= static_cast<uint8_t>(MessageKind::kHave));
}

Status CheckNumbers(const ServerMessage& message) {
  if (std::min({message.clock, message.version, message.first}) < 0) {
    return DataLoss(fmt::format("a message to or from a server has clock {}, version {}, row {}",
                                message.clock, message.version, message.first));
  }
  if (message.rows < 0 || message.correct < 0 || message.correct > message.rows) {
    return DataLoss(fmt::format("a message to or from a server has {} rows, {} of them correct",
                                message.rows, message.correct));
  }
  if (message.bytes <= kMostBytes) return OkStatus();
  return DataLoss(fmt::format("a message to or from a server announces {} bytes", message.bytes));
}

}  // namespace

EncodedMessage EncodeMessage(const ServerMessage& message) {
  EncodedMessage bytes;
  const int flags = (message.finite ? kFinite : 0) | (message.applied ? kApplied : 0) |
                    (message.statistics ? kStatistics : 0);
  WireWriter(bytes)
      .Put(kMagic)
      .Put(kVersion)
      .Put(static_cast<uint8_t>(message.kind))
      .Put(static_cast<uint8_t>(flags))
      .Put(message.reason)
      .Put(message.clock)
      .Put(message.version)
      .Put(message.first)
      .Put(message.rows)
      .Put(message.correct)
      .Put(std::bit_cast<uint64_t>(message.loss_sum))
      .Put(std::bit_cast<uint64_t>(message.norm))
      .Put(message.bytes)
      .Put(message.worker);
  return bytes;
}

StatusOr<ServerMessage> DecodeMessage(std::span<const std::byte, kServerMessageBytes> bytes) {
  WireReader record(bytes);
  if (const auto magic = record.Get<uint32_t>(); magic != kMagic) {
    return DataLoss(fmt::format("not a message to or from a server: it begins with {:08x}", magic));
  }
  if (const auto version = record.Get<uint8_t>(); version != kVersion) {
    return DataLoss(
        fmt::format("a message of version {} of the servers' protocol, not {}; run the "
                    "same build everywhere",
                    version, kVersion));
  }
  const auto kind = record.Get<uint8_t>(), flags = record.Get<uint8_t>();
  if (!IsKind(kind) || (flags & ~(kFinite | kApplied | kStatistics)) != 0) {
    return DataLoss(fmt::format("a message of kind {} with flags {}", kind, flags));
  }
  ServerMessage message{.kind = static_cast<MessageKind>(kind),
                        .finite = (flags & kFinite) != 0,
                        .applied = (flags & kApplied) != 0,
                        .statistics = (flags & kStatistics) != 0,
                        .reason = record.Get<uint8_t>()};
  message.clock = record.Get<int64_t>();
  message.version = record.Get<int64_t>();
  message.first = record.Get<int64_t>();
  message.rows = record.Get<int32_t>();
  message.correct = record.Get<int32_t>();
  message.loss_sum = std::bit_cast<double>(record.Get<uint64_t>());
  message.norm = std::bit_cast<double>(record.Get<uint64_t>());
  message.bytes = record.Get<uint64_t>();
  message.worker = record.Get<int32_t>();
  RT_RETURN_IF_ERROR(CheckNumbers(message));
  return message;
}

}  // namespace ringtail
