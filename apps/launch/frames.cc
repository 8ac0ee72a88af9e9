#include "apps/launch/frames.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace ringtail {
namespace {

constexpr size_t kHeaderBytes = 1 + 4 + 4;
static_assert(std::endian::native == std::endian::little, "frames are little-endian");

void AppendNumber(uint32_t number, std::string* to) {
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));
  to->append(bytes, sizeof(bytes));
}

uint32_t NumberAt(const std::string& bytes, size_t place) {
  uint32_t number = 0;
  std::memcpy(&number, bytes.data() + place, sizeof(number));
  return number;
}

}  // namespace

std::string EncodeFrame(AgentFrameKind kind, uint32_t number, std::string_view bytes) {
  std::string frame(1, static_cast<char>(kind));
  AppendNumber(number, &frame);
  AppendNumber(static_cast<uint32_t>(bytes.size()), &frame);
  frame += bytes;
  return frame;
}

StatusOr<std::optional<Frame>> FrameReader::Next() {
  if (bytes_.size() < kHeaderBytes) return std::optional<Frame>();
  const auto kind = static_cast<uint8_t>(bytes_[0]);
  const size_t length = NumberAt(bytes_, 5);
  if (kind < static_cast<uint8_t>(AgentFrameKind::kHello) ||
      kind > static_cast<uint8_t>(AgentFrameKind::kSignal) || length > kMaxFrameBytes) {
    return DataLoss("what comes from the other side is not what a launcher and its agent say");
  }
  if (bytes_.size() < kHeaderBytes + length) return std::optional<Frame>();
  std::optional<Frame> frame({static_cast<AgentFrameKind>(kind), NumberAt(bytes_, 1),
                              bytes_.substr(kHeaderBytes, length)});
  bytes_.erase(0, kHeaderBytes + length);
  return frame;
}

std::optional<std::string> FrameReader::TakeGreeting() {
  const size_t place = bytes_.find(kAgentGreeting);
  if (place == std::string::npos) return std::nullopt;
  std::string before = bytes_.substr(0, place);
  bytes_.erase(0, place + std::strlen(kAgentGreeting));
  return before;
}

std::string JoinTexts(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined.append(text).push_back('\0');
  return joined;
}

std::vector<std::string> SplitTexts(std::string_view joined) {
  std::vector<std::string> texts;
  while (!joined.empty()) {
    const size_t end = std::min(joined.find('\0'), joined.size());
    texts.emplace_back(joined.substr(0, end));
    joined.remove_prefix(std::min(end + 1, joined.size()));
  }
  return texts;
}

}  // namespace ringtail
