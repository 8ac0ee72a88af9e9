#include "apps/report/event_log.h"

#include <fcntl.h>

#include <span>
#include <string_view>
#include <vector>

#include "apps/report/tensorboard_events.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

Status Append(const FileDescriptor& file, std::string_view text) {
  return file.Write(std::as_bytes(std::span(text)));
}

}  // namespace

Status EventLog::Part::Begin(const std::string& below, const std::vector<HistoryPoint>& points) {
  folder = below;
  if (points.empty()) return RemoveEventFiles(folder, "");
  RT_RETURN_IF_ERROR(MakeDirectories(folder));
  const std::string name = NextEventFileName(folder), path = folder + "/" + name;
  RT_RETURN_IF_ERROR(WriteFileAtomic(path, EventFile(points)));
  RT_RETURN_IF_ERROR(RemoveEventFiles(folder, name));
  RT_ASSIGN_OR_RETURN(file, FileDescriptor::Open(path, O_WRONLY | O_APPEND));
  return OkStatus();
}

Status EventLog::Part::Add(const HistoryPoint& point) {
  const std::string record = PointRecord(point);
  if (file) return Append(*file, record);
  RT_RETURN_IF_ERROR(MakeDirectories(folder));
  const std::string path = folder + "/" + NextEventFileName(folder);
  RT_ASSIGN_OR_RETURN(file, FileDescriptor::Open(path, O_WRONLY | O_CREAT | O_APPEND));
  return Append(*file, EventFileHead(point.time) + record);
}

StatusOr<EventLog> EventLog::Open(const std::string& folder, const RunHistory& history) {
  EventLog log;
  RT_RETURN_IF_ERROR(log.train_.Begin(folder + "/train", history.training));
  RT_RETURN_IF_ERROR(log.validation_.Begin(folder + "/validation", history.evaluation));
  return log;
}

}  // namespace ringtail
