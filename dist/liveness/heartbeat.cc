#include "dist/liveness/heartbeat.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringtail {
namespace {

constexpr uint32_t kMagic = 0x32485452;  // bytes 'R' 'T' 'H' '2'
// Nothing takes longer (35 years in microseconds), and no sum of such times overflows.
constexpr uint64_t kLongestTime = uint64_t{1} << 50;

template <typename T>
void Put(T value, std::span<std::byte> to) {
  for (size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

template <typename T>
T Get(std::span<const std::byte> from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(from[i]) << (8 * i);
  return value;
}

}  // namespace

std::vector<std::byte> EncodeHeartbeat(const Heartbeat& heartbeat) {
  std::vector<std::byte> bytes(HeartbeatBytes(heartbeat.beats.size()));
  const std::span<std::byte> to(bytes);
  Put(kMagic, to);
  to[4] = static_cast<std::byte>(heartbeat.phase);
  to[5] = static_cast<std::byte>(heartbeat.last);
  Put(heartbeat.sequence, to.subspan(8));
  Put(heartbeat.step, to.subspan(16));
  Put(heartbeat.counter, to.subspan(24));
  Put(heartbeat.unchanged_ms, to.subspan(32));
  Put(heartbeat.step_us, to.subspan(40));
  Put(heartbeat.compute_us, to.subspan(48));
  Put(heartbeat.moved, to.subspan(56));
  for (size_t rank = 0; rank < heartbeat.beats.size(); ++rank) {
    Put(heartbeat.beats[rank], to.subspan(HeartbeatBytes(rank)));
  }
  return bytes;
}

StatusOr<Heartbeat> DecodeHeartbeat(std::span<const std::byte> bytes) {
  if (bytes.size() < HeartbeatBytes(0) || bytes.size() % sizeof(uint32_t) != 0) {
    return DataLoss(fmt::format("it has {} bytes", bytes.size()));
  }
  const uint32_t magic = Get<uint32_t>(bytes);
  if (magic != kMagic) return DataLoss(fmt::format("it begins with {:08x}", magic));
  const auto phase = Get<uint8_t>(bytes.subspan(4)), last = Get<uint8_t>(bytes.subspan(5));
  if (phase > static_cast<uint8_t>(kLastPhase)) return DataLoss(fmt::format("phase {}", phase));
  if (last > 1 || Get<uint16_t>(bytes.subspan(6)) != 0) return DataLoss("unknown flags");
  Heartbeat heartbeat = {.sequence = Get<uint64_t>(bytes.subspan(8)),
                         .phase = static_cast<Phase>(phase),
                         .last = last == 1,
                         .step = Get<uint64_t>(bytes.subspan(16)),
                         .counter = Get<uint64_t>(bytes.subspan(24)),
                         .unchanged_ms = Get<uint64_t>(bytes.subspan(32)),
                         .step_us = Get<uint64_t>(bytes.subspan(40)),
                         .compute_us = Get<uint64_t>(bytes.subspan(48)),
                         .moved = Get<uint64_t>(bytes.subspan(56)),
                         .beats = {}};
  for (size_t at = HeartbeatBytes(0); at < bytes.size(); at += sizeof(uint32_t)) {
    heartbeat.beats.push_back(Get<uint32_t>(bytes.subspan(at)));
  }
  if (std::max({heartbeat.unchanged_ms, heartbeat.step_us, heartbeat.compute_us}) > kLongestTime) {
    return DataLoss("a time of many years");
  }
  return heartbeat;
}

}  // namespace ringtail
