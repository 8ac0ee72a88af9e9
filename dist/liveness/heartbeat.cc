#include "dist/liveness/heartbeat.h"

#include <fmt/format.h>

#include <algorithm>

#include "dist/wire_record.h"

namespace ringtail {
namespace {

constexpr uint32_t kMagic = 0x32485452;  // bytes 'R' 'T' 'H' '2'
// Nothing takes longer (35 years in microseconds), and no sum of such times overflows.
constexpr uint64_t kLongestTime = uint64_t{1} << 50;

}  // namespace

std::vector<std::byte> EncodeHeartbeat(const Heartbeat& heartbeat) {
  std::vector<std::byte> bytes(HeartbeatBytes(heartbeat.beats.size()));
  WireWriter record(bytes);
  record.Put(kMagic)
      .Put(static_cast<uint8_t>(heartbeat.phase))
      .Put(static_cast<uint8_t>(heartbeat.last))
      .Put(uint16_t{0})
      .Put(heartbeat.sequence)
      .Put(heartbeat.step)
      .Put(heartbeat.counter)
      .Put(heartbeat.unchanged_ms)
      .Put(heartbeat.step_us)
      .Put(heartbeat.compute_us)
      .Put(heartbeat.moved);
  for (const uint32_t beat : heartbeat.beats) record.Put(beat);
  return bytes;
}

StatusOr<Heartbeat> DecodeHeartbeat(std::span<const std::byte> bytes) {
  if (bytes.size() < HeartbeatBytes(0) || bytes.size() % sizeof(uint32_t) != 0) {
    return DataLoss(fmt::format("it has {} bytes", bytes.size()));
  }
  WireReader record(bytes);
  const auto magic = record.Get<uint32_t>();
  if (magic != kMagic) return DataLoss(fmt::format("it begins with {:08x}", magic));
  const auto phase = record.Get<uint8_t>(), last = record.Get<uint8_t>();
  if (phase > static_cast<uint8_t>(kLastPhase)) return DataLoss(fmt::format("phase {}", phase));
  if (last > 1 || record.Get<uint16_t>() != 0) return DataLoss("unknown flags");
  Heartbeat heartbeat;
  heartbeat.phase = static_cast<Phase>(phase);
  heartbeat.last = last == 1;
  heartbeat.sequence = record.Get<uint64_t>();
  heartbeat.step = record.Get<uint64_t>();
  heartbeat.counter = record.Get<uint64_t>();
  heartbeat.unchanged_ms = record.Get<uint64_t>();
  heartbeat.step_us = record.Get<uint64_t>();
  heartbeat.compute_us = record.Get<uint64_t>();
  heartbeat.moved = record.Get<uint64_t>();
  heartbeat.beats.resize((bytes.size() - HeartbeatBytes(0)) / sizeof(uint32_t));
  for (uint32_t& beat : heartbeat.beats) beat = record.Get<uint32_t>();
  if (std::max({heartbeat.unchanged_ms, heartbeat.step_us, heartbeat.compute_us}) > kLongestTime) {
    return DataLoss("a time of many years");
  }
  return heartbeat;
}

}  // namespace ringtail
