#include "apps/report/tensorboard_events.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>

#include "apps/report/event.pb.h"
#include "core/storage/crc32c.h"
#include "core/storage/file.h"
#include "core/storage/metrics.h"

namespace ringtail {
namespace {

constexpr char kPrefix[] = "events.out.tfevents.", kSuffix[] = ".ringtail";
constexpr int64_t kMostBytes = int64_t{1} << 31;  // 15 million steps

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

bool IsEventFileName(const std::string& name) {
  return name.starts_with(kPrefix) && name.ends_with(kSuffix);
}

// Whether the only file of `folder` is, or begins with, `content`.
bool HasContent(const std::string& folder, const std::string& content) {
  const std::vector<std::string> names = EventFileNames(folder);
  if (names.size() != 1) return false;
  const auto present = ReadFileText(folder + "/" + names[0], kMostBytes);
  return present.ok() && present->starts_with(content);
}

Status WritePart(const std::string& folder, const std::vector<HistoryPoint>& points) {
  if (points.empty()) return RemoveEventFiles(folder, "");
  const std::string content = EventFile(points);
  if (HasContent(folder, content)) return OkStatus();
  RT_RETURN_IF_ERROR(MakeDirectories(folder));
  const std::string name = NextEventFileName(folder);
  RT_RETURN_IF_ERROR(WriteFileAtomic(folder + "/" + name, content));
  return RemoveEventFiles(folder, name);
}

std::string Record(const tensorboard::Event& event) {
  return EventRecord(event.SerializeAsString());
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

std::string EventFileHead(double time) {
  tensorboard::Event version, start;
  version.set_wall_time(time);
  version.set_file_version("brain.Event:2");
  start.set_wall_time(time);
  start.set_step(0);
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return Record(version) + Record(start);
}

std::string PointRecord(const HistoryPoint& point) {
  tensorboard::Event event;
  event.set_wall_time(point.time);
  event.set_step(point.step);
  AddValue("loss", point.loss, &event);
  AddValue("accuracy", point.accuracy, &event);
  AddValue("learning_rate", point.learning_rate, &event);
  return event.has_summary() ? Record(event) : "";
}

std::string EventFile(const std::vector<HistoryPoint>& points) {
  double time = 0;  // of the last point that has one: files of older versions have none
  if (!points.empty() && std::isfinite(points.front().time)) time = points.front().time;
  std::string file = EventFileHead(time);
  for (HistoryPoint point : points) {
    if (std::isfinite(point.time)) time = point.time;
    point.time = time;
    file += PointRecord(point);
  }
  return file;
}

std::vector<std::string> EventFileNames(const std::string& folder) {
  auto names = ListFolder(folder);
  if (!names.ok()) return {};
  std::erase_if(*names, [](const std::string& name) { return !IsEventFileName(name); });
  return *std::move(names);
}

std::string NextEventFileName(const std::string& folder) {
  const auto name_of = [](int64_t second) {
    return fmt::format("{}{:010}{}", kPrefix, second, kSuffix);
  };
  auto second = static_cast<int64_t>(UnixSeconds());
  const std::vector<std::string> names = EventFileNames(folder);
  while (!names.empty() && name_of(second) <= names.back()) ++second;
  return name_of(second);
}

Status RemoveEventFiles(const std::string& folder, const std::string& kept) {
  for (const std::string& name : EventFileNames(folder)) {
    std::error_code error;
    if (name != kept) std::filesystem::remove(folder + "/" + name, error);
    if (error) return ErrnoStatus(error.value(), "cannot remove '" + folder + "/" + name + "'");
  }
  return OkStatus();
}

Status WriteEventFiles(const std::string& folder, const RunHistory& history) {
  RT_RETURN_IF_ERROR(WritePart(folder + "/train", history.training));
  return WritePart(folder + "/validation", history.evaluation);
}

}  // namespace ringtail
