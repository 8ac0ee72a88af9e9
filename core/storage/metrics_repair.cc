#include "core/storage/metrics_repair.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "core/storage/file.h"
#include "core/storage/file_descriptor.h"

namespace ringtail {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr size_t kMaxLineBytes = size_t{1} << 24;  // a line of 50,000 ranks; longer ones are torn

// The step of a line as MetricsJson writes it, from its first bytes: {"kind":"step","step":120,
// A line torn by a lost block contains control characters or has no end.
std::optional<int64_t> StepOfOurLine(std::string_view line) {
  constexpr std::string_view kStarts[] = {
      R"({"kind":"step","step":)", R"({"kind":"evaluation","step":)", R"({"kind":"round","step":)",
      R"({"kind":"update","step":)"};
  for (const std::string_view start : kStarts) {
    if (!line.starts_with(start) || !line.ends_with('}')) continue;
    const char* const begin = line.data() + start.size();
    const char* const end = line.data() + line.size();
    int64_t step = 0;
    const auto [stop, error] = std::from_chars(begin, end, step);
    if (error != std::errc() || stop == end || *stop != ',') return std::nullopt;
    const bool torn = line.find('\0') != std::string_view::npos;
    return torn ? std::nullopt : std::optional<int64_t>(step);
  }
  return std::nullopt;
}

// Whether a run that resumes after `last_step` keeps this line.
bool IsKept(std::string_view line, int64_t last_step) {
  if (const std::optional<int64_t> step = StepOfOurLine(line)) return *step <= last_step;
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;  // torn
  const auto step = json.find("step");
  return step != json.end() && step->is_number_integer() && step->get<int64_t>() <= last_step;
}

// Calls `visit`(line without newline, its offset) for each whole line.
using LineVisitor = std::function<Status(std::string_view line, int64_t offset)>;
Status ForEachLine(const FileDescriptor& file, const LineVisitor& visit) {
  std::string text;       // from `offset` on, not yet processed
  int64_t offset = 0;     // in the file
  bool too_long = false;  // the line at `offset` started earlier and is skipped
  while (true) {
    const size_t before = text.size();
    text.resize(before + kBlockBytes);
    const auto rest = std::as_writable_bytes(std::span(text)).subspan(before);
    RT_ASSIGN_OR_RETURN(const size_t got, file.ReadAt(offset + static_cast<int64_t>(before), rest));
    text.resize(before + got);
    size_t begin = 0;
    size_t from = before;  // no line end before it
    for (size_t end = 0; (end = text.find('\n', from)) != std::string::npos; from = begin) {
      const std::string_view line = std::string_view(text).substr(begin, end - begin);
      if (!too_long) RT_RETURN_IF_ERROR(visit(line, offset + static_cast<int64_t>(begin)));
      too_long = false;
      begin = end + 1;
    }
    if (got < kBlockBytes) return OkStatus();  // the rest has no newline: torn
    if (text.size() - begin > kMaxLineBytes) {
      too_long = true;
      begin = text.size();
    }
    text.erase(0, begin);
    offset += static_cast<int64_t>(begin);
  }
}

// Which lines are kept.
struct Survey {
  int64_t kept_bytes = 0;   // of the leading lines that are kept
  bool kept_later = false;  // a line after a dropped one is kept, too
};

StatusOr<Survey> Look(const FileDescriptor& file, int64_t last_step) {
  Survey survey;
  RT_RETURN_IF_ERROR(ForEachLine(file, [&](std::string_view line, int64_t offset) {
    if (!IsKept(line, last_step)) return OkStatus();
    if (offset == survey.kept_bytes) {
      survey.kept_bytes = offset + static_cast<int64_t>(line.size()) + 1;
    } else {
      survey.kept_later = true;
    }
    return OkStatus();
  }));
  return survey;
}

Status CopyKept(const FileDescriptor& from, int64_t last_step, const FileDescriptor& to) {
  std::string kept;
  const auto write = [&] {
    const Status status = to.Write(std::as_bytes(std::span(kept)));
    kept.clear();
    return status;
  };
  RT_RETURN_IF_ERROR(ForEachLine(from, [&](std::string_view line, int64_t /*offset*/) {
    if (IsKept(line, last_step)) kept.append(line).push_back('\n');
    return kept.size() < kBlockBytes ? OkStatus() : write();
  }));
  return write();
}

}  // namespace

Status RepairMetrics(const std::string& path, int64_t last_step) {
  auto opened = FileDescriptor::Open(path, O_RDWR | O_NONBLOCK);
  if (opened.status().code() == StatusCode::kNotFound) return WriteFileAtomic(path, "");
  RT_ASSIGN_OR_RETURN(const FileDescriptor file, std::move(opened));
  struct stat info = {};
  if (fstat(file.number(), &info) != 0) return ErrnoStatus(errno, "cannot examine '" + path + "'");
  if (!S_ISREG(info.st_mode)) return InvalidArgument("'" + path + "' is not a regular file");
  RT_ASSIGN_OR_RETURN(const Survey survey, Look(file, last_step));
  if (survey.kept_later) {
    return WriteFileAtomic(
        path, [&](const FileDescriptor& repaired) { return CopyKept(file, last_step, repaired); });
  }
  if (survey.kept_bytes == info.st_size) return OkStatus();
  if (ftruncate(file.number(), survey.kept_bytes) != 0) {
    return ErrnoStatus(errno, "cannot shorten '" + path + "'");
  }
  return file.Sync();
}

}  // namespace ringtail
