#include "apps/report/tensorboard_events.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "apps/report/event.pb.h"
#include "core/storage/crc32c.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

template <typename Number>
void AppendBytes(Number number, std::string* bytes) {
  char raw[sizeof(Number)];
  std::memcpy(raw, &number, sizeof(Number));
  bytes->append(raw, sizeof(Number));
}

// Rotated and shifted, because a checksum of data that contains its own checksum is no check.
uint32_t MaskedCrc(std::string_view bytes) {
  constexpr uint32_t kMaskDelta = 0xa282ead8U;
  return std::rotr(Crc32c(std::as_bytes(std::span(bytes))), 15) + kMaskDelta;
}

void AddValue(const char* tag, double value, tensorboard::Event* event) {
  if (!std::isfinite(value)) return;
  auto* const entry = event->mutable_summary()->add_value();
  entry->set_tag(tag);
  entry->set_simple_value(static_cast<float>(value));
}

Status WritePart(const std::string& folder, const std::vector<HistoryPoint>& points) {
  if (points.empty()) return OkStatus();
  RT_RETURN_IF_ERROR(MakeDirectories(folder));
  return WriteFileAtomic(folder + "/" + kEventFileName, EventFile(points));
}

}  // namespace

std::string EventRecord(std::string_view event) {
  std::string record;
  AppendBytes<uint64_t>(event.size(), &record);
  AppendBytes<uint32_t>(MaskedCrc(record), &record);
  record += event;
  AppendBytes<uint32_t>(MaskedCrc(event), &record);
  return record;
}

std::string EventFile(const std::vector<HistoryPoint>& points) {
  double time = 0;  // of the last point that has one: files of older versions have none
  if (!points.empty() && std::isfinite(points.front().time)) time = points.front().time;
  tensorboard::Event version;
  version.set_wall_time(time);
  version.set_file_version("brain.Event:2");
  std::string file = EventRecord(version.SerializeAsString());
  for (const HistoryPoint& point : points) {
    if (std::isfinite(point.time)) time = point.time;
    tensorboard::Event event;
    event.set_wall_time(time);
    event.set_step(point.step);
    AddValue("loss", point.loss, &event);
    AddValue("accuracy", point.accuracy, &event);
    AddValue("learning_rate", point.learning_rate, &event);
    if (event.has_summary()) file += EventRecord(event.SerializeAsString());
  }
  return file;
}

Status WriteEventFiles(const std::string& folder, const RunHistory& history) {
  RT_RETURN_IF_ERROR(WritePart(folder + "/train", history.training));
  return WritePart(folder + "/validation", history.evaluation);
}

}  // namespace ringtail
