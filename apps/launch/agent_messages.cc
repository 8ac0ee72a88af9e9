#include "apps/launch/agent_messages.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace ringtail {
namespace {

using Length = uint32_t;
static_assert(std::endian::native == std::endian::little, "lengths are little-endian");

}  // namespace

std::string EncodeAgentMessage(const AgentMessage& message) {
  const auto length = static_cast<Length>(message.ByteSizeLong());
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  message.AppendToString(&bytes);
  return bytes;
}

StatusOr<std::optional<AgentMessage>> AgentMessageReader::Next() {
  if (bytes_.size() < sizeof(Length)) return std::optional<AgentMessage>();
  Length length = 0;
  std::memcpy(&length, bytes_.data(), sizeof(length));
  const Status invalid =
      DataLoss("received bytes that are not messages of a launcher and its agent");
  if (length > kMaxMessageBytes) return invalid;
  if (bytes_.size() < sizeof(length) + length) return std::optional<AgentMessage>();
  std::optional<AgentMessage> message(std::in_place);
  const bool parsed =
      message->ParseFromArray(bytes_.data() + sizeof(length), static_cast<int>(length));
  if (!parsed || message->kind_case() == AgentMessage::KIND_NOT_SET) return invalid;
  bytes_.erase(0, sizeof(length) + length);
  return message;
}

std::optional<std::string> AgentMessageReader::TakeGreeting() {
  const size_t place = bytes_.find(kAgentGreeting);
  if (place == std::string::npos) return std::nullopt;
  std::string before = bytes_.substr(0, place);
  bytes_.erase(0, place + std::strlen(kAgentGreeting));
  return before;
}

}  // namespace ringtail
