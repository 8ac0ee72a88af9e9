#include "core/storage/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>

#include "core/storage/file_kind.h"
#include "core/storage/output_target.h"

namespace ringtail {
namespace {

constexpr mode_t kNewFolderMode = 0777;
constexpr std::string_view kTemporaryMark = ".tmp-";

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

bool IsTemporaryName(std::string_view name) {
  const size_t mark = name.rfind(kTemporaryMark);
  if (mark == std::string_view::npos || mark < 2 || name.front() != '.') return false;
  const std::string_view pid = name.substr(mark + kTemporaryMark.size());
  return !pid.empty() && pid.find_first_not_of("0123456789") == std::string_view::npos;
}

std::span<std::byte> WritableBytes(std::vector<std::byte>& bytes) { return bytes; }
std::span<std::byte> WritableBytes(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

// The reported size is only a hint: it is 0 in /proc, and a file may grow or shrink while it is
// read. So this reads until the end, up to one byte more than `max_bytes`, to detect that there is
// more.
template <typename Content>
StatusOr<Content> ReadWhole(const FileDescriptor& file, int64_t size_hint, int64_t max_bytes) {
  constexpr int64_t kSmallest = 4096;
  Content content;
  size_t used = 0;
  int64_t capacity = std::max(size_hint + 1, kSmallest);
  while (true) {
    content.resize(static_cast<size_t>(std::min(capacity, max_bytes + 1)));
    const std::span<std::byte> rest = WritableBytes(content).subspan(used);
    RT_ASSIGN_OR_RETURN(const size_t got, file.Read(rest));
    used += got;
    if (got < rest.size()) break;
    if (static_cast<int64_t>(used) > max_bytes) {
      return ResourceExhausted("'" + file.path() + "' has more than the " +
                               std::to_string(max_bytes) + " bytes that are allowed here");
    }
    capacity *= 2;
  }
  content.resize(used);
  return content;
}

template <typename Content>
StatusOr<Content> ReadFile(const std::string& path, int64_t max_bytes) {
  RT_CHECK(max_bytes >= 0, "a limit cannot be negative");
  max_bytes = std::min(max_bytes, INT64_MAX - 1);  // so that max_bytes + 1 does not overflow
  // Without O_NONBLOCK, opening a named pipe would wait for its writer.
  RT_ASSIGN_OR_RETURN(const FileDescriptor file, FileDescriptor::Open(path, O_RDONLY | O_NONBLOCK));
  struct stat info = {};
  if (fstat(file.number(), &info) != 0) return ErrnoStatus(errno, "cannot examine '" + path + "'");
  if (!S_ISREG(info.st_mode)) return InvalidArgument("'" + path + "' is not a regular file");
  if (info.st_size > max_bytes) {
    return ResourceExhausted("'" + path + "' has " + std::to_string(info.st_size) +
                             " bytes, more than the " + std::to_string(max_bytes) +
                             " that are allowed here");
  }
  try {
    return ReadWhole<Content>(file, info.st_size, max_bytes);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("not enough memory to read '" + path + "' (" +
                             std::to_string(info.st_size) + " bytes)");
  }
}

// Renames the finished file `temporary`, durably.
Status RenameDurably(const std::string& temporary, const std::string& path) {
  // Opened before the rename: afterwards only the fsync itself may fail.
  RT_ASSIGN_OR_RETURN(const FileDescriptor folder,
                      FileDescriptor::Open(FolderOf(path), O_RDONLY | O_DIRECTORY));
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, "cannot rename '" + temporary + "' to '" + path + "'");
  }
  return folder.SyncFolder();
}

Status WriteAndSync(const std::string& path, const FileWriter& write) {
  // O_TRUNC and not O_EXCL: in a container every run may have the same process id as a killed one.
  RT_ASSIGN_OR_RETURN(FileDescriptor file,
                      FileDescriptor::Open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
  RT_RETURN_IF_ERROR(write(file));
  RT_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

Status ReplaceFile(const std::string& path, const FileWriter& write) {
  const std::string temporary = TemporaryPath(path);
  Status status = WriteAndSync(temporary, write);
  if (status.ok()) status = RenameDurably(temporary, path);
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

// No sync: pipes and most devices have nothing to sync.
Status WriteStream(FileDescriptor* stream, const FileWriter& write) {
  RT_RETURN_IF_ERROR(write(*stream));
  return stream->Close();
}

// What prevents the creation of a folder, in words; empty if unknown.
std::string Obstacle(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return "";
  if (!S_ISLNK(info.st_mode)) return DescribeFileKind(info.st_mode) + " has that name";
  std::error_code ignored;
  const std::string to = std::filesystem::read_symlink(path, ignored).string();
  if (stat(path.c_str(), &info) == 0) {
    return "it is a link to '" + to + "', " + DescribeFileKind(info.st_mode);
  }
  if (errno == ELOOP) return "it is a link that leads back to itself";
  return "it is a link to '" + to + "', which is not there";
}

// Creates one folder; `made`: whether it was missing.
Status MakeFolder(const std::string& path, bool* made) {
  *made = mkdir(path.c_str(), kNewFolderMode) == 0;
  if (*made) return OkStatus();
  const int error = errno;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return OkStatus();
  const std::string what = "cannot make the folder '" + path + "'";
  const std::string obstacle = error == EEXIST ? Obstacle(path) : "";
  return obstacle.empty() ? ErrnoStatus(error, what) : InvalidArgument(what + ": " + obstacle);
}

}  // namespace

// In the folder of `path`, because rename works only inside one file system.
std::string TemporaryPath(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return FolderOf(path) + "/." + name + std::string(kTemporaryMark) + std::to_string(getpid());
}

StatusOr<std::vector<std::byte>> ReadFileBytes(const std::string& path, int64_t max_bytes) {
  return ReadFile<std::vector<std::byte>>(path, max_bytes);
}

StatusOr<std::string> ReadFileText(const std::string& path, int64_t max_bytes) {
  return ReadFile<std::string>(path, max_bytes);
}

Status WriteFileAtomic(const std::string& path, const FileWriter& write) {
  const auto written = [&]() -> Status {
    RT_ASSIGN_OR_RETURN(OutputTarget target, FindOutputTarget(path));
    if (target.stream) return WriteStream(&*target.stream, write);
    return ReplaceFile(target.path, write);
  };
  return written().Annotate("writing '" + path + "'");
}

Status WriteFileAtomic(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  return WriteFileAtomic(path, [&](const FileDescriptor& file) {
    for (const std::span<const std::byte> part : parts) RT_RETURN_IF_ERROR(file.Write(part));
    return OkStatus();
  });
}

Status WriteFileAtomic(const std::string& path, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return WriteFileAtomic(path, std::span(&part, 1));
}

Status LinkFileAtomic(const std::string& existing, const std::string& path) {
  const std::string temporary = TemporaryPath(path);
  unlink(temporary.c_str());  // link, unlike open, does not replace an existing file
  if (link(existing.c_str(), temporary.c_str()) != 0) {
    if (errno == ENOENT) return NotFound("'" + existing + "' does not exist; cannot link it");
    RT_ASSIGN_OR_RETURN(const std::vector<std::byte> content, ReadFileBytes(existing, INT64_MAX));
    const std::span<const std::byte> part = content;
    return WriteFileAtomic(path, std::span(&part, 1));
  }
  const Status status = RenameDurably(temporary, path);
  // Also on success: rename does nothing if both are already names of one file.
  unlink(temporary.c_str());
  return status.Annotate("linking '" + existing + "' as '" + path + "'");
}

Status MakeDirectories(const std::string& path) {
  std::filesystem::path folder;
  for (const std::filesystem::path& component : std::filesystem::path(path)) {
    folder /= component;
    bool made = false;
    RT_RETURN_IF_ERROR(MakeFolder(folder.string(), &made));
    if (!made) continue;
    RT_ASSIGN_OR_RETURN(const FileDescriptor parent,
                        FileDescriptor::Open(FolderOf(folder.string()), O_RDONLY | O_DIRECTORY));
    RT_RETURN_IF_ERROR(parent.SyncFolder());
  }
  return OkStatus();
}

StatusOr<std::vector<std::string>> ListFolder(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return ErrnoStatus(error.value(), "cannot list the folder '" + folder + "'");
  std::sort(names.begin(), names.end());
  return names;
}

Status RemoveTemporaryFiles(const std::string& folder) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    if (!IsTemporaryName(name)) continue;
    const std::string path = std::filesystem::path(folder) / name;
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, "cannot remove the temporary file '" + path + "'");
    }
  }
  return OkStatus();
}

}  // namespace ringtail
