#include "core/storage/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/logging.h"
#include "core/storage/file.h"
#include "core/storage/file_kind.h"

namespace ringtail {
namespace {

constexpr size_t kMaxHostName = 256;
constexpr int64_t kMaxLockBytes = 4096;
constexpr char kLockName[] = "lock";

std::string LockPath(const std::string& folder) { return folder + "/" + kLockName; }

std::string HolderText() {
  std::array<char, kMaxHostName> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return std::to_string(getpid()) + "@" + host.data();
}

// "process 12 on host a" for "12@a"; a process that has only just taken the lock has no name yet.
std::string DescribeHolder(const std::string& lock_path) {
  const StatusOr<std::string> text = ReadFileText(lock_path, kMaxLockBytes);
  const size_t at = text.ok() ? text->find('@') : std::string::npos;
  if (at == std::string::npos) return "another process";
  return "process " + text->substr(0, at) + " on host " + text->substr(at + 1);
}

// Whether `path` leads to the open file; an error if that cannot be determined.
StatusOr<bool> LeadsTo(const std::string& path, const FileDescriptor& file) {
  struct stat named = {}, open = {};
  if (stat(path.c_str(), &named) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return false;
    return ErrnoStatus(errno, "cannot examine '" + path + "'");
  }
  if (fstat(file.number(), &open) != 0) {
    return ErrnoStatus(errno, "cannot examine the open '" + file.path() + "'");
  }
  return open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

// Opens `folder`/lock and locks it.
StatusOr<FileDescriptor> LockFolder(const std::string& folder) {
  const std::string path = LockPath(folder);
  // Without O_NONBLOCK, opening some devices would wait.
  RT_ASSIGN_OR_RETURN(FileDescriptor file,
                      FileDescriptor::Open(path, O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY));
  struct stat info = {};
  if (fstat(file.number(), &info) != 0) return ErrnoStatus(errno, "cannot examine '" + path + "'");
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument(fmt::format("'{}' is {} and no lock of Ringtail; remove it", path,
                                       DescribeFileKind(info.st_mode)));
  }
  int result = 0;
  do {
    result = flock(file.number(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EWOULDBLOCK) {
    return AlreadyExists("the run folder '" + folder + "' is in use by " + DescribeHolder(path) +
                         "; stop that run or choose another folder");
  }
  if (result != 0) return ErrnoStatus(errno, "cannot lock '" + path + "'");

  // The previous holder may have left its name.
  if (ftruncate(file.number(), 0) != 0) return ErrnoStatus(errno, "cannot empty '" + path + "'");
  const std::string holder = HolderText();
  RT_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(holder))));
  return file;
}

// Whether the folder is missing or holds at most a lock: it was deleted or emptied.
bool HoldsNothing(const std::string& folder) {
  const auto names = ListFolder(folder);
  if (!names.ok()) return names.status().code() == StatusCode::kNotFound;
  return std::all_of(names->begin(), names->end(),
                     [](const std::string& name) { return name == kLockName; });
}

}  // namespace

class RunLock::Held {
 public:
  Held(std::string name, FileDescriptor folder, FileDescriptor lock)
      : name_(std::move(name)), folder_(std::move(folder)), lock_(std::move(lock)) {}
  // Removes the name, which is no longer true; closing the file frees the lock.
  ~Held() {
    if (ftruncate(lock_.number(), 0) != 0) return;
  }

  const std::string& name() const { return name_; }
  int64_t times_remade() const { return times_remade_; }
  std::string PathByNumber() const { return "/proc/self/fd/" + std::to_string(folder_.number()); }
  Status Find();

 private:
  std::optional<std::string> NameOfFolder() const;
  Status LockAgain();
  Status MakeAgain();

  std::string name_;
  FileDescriptor folder_, lock_;
  int64_t times_remade_ = 0;
};

// The current name of the open folder, if it has one.
std::optional<std::string> RunLock::Held::NameOfFolder() const {
  std::error_code error;
  const std::filesystem::path name = std::filesystem::read_symlink(PathByNumber(), error);
  if (error) return std::nullopt;
  const auto found = LeadsTo(name.string(), folder_);
  if (!found.ok() || !*found) return std::nullopt;
  return name.string();
}

Status RunLock::Held::Find() {
  RT_ASSIGN_OR_RETURN(const bool unchanged, LeadsTo(LockPath(name_), lock_));
  if (unchanged) return OkStatus();
  RT_ASSIGN_OR_RETURN(const bool same_folder, LeadsTo(name_, folder_));
  if (same_folder) return LockAgain();
  const std::optional<std::string> moved = NameOfFolder();
  if (!moved) return MakeAgain();
  LogWarning(
      fmt::format("the run folder '{}' is now '{}': the run continues there", name_, *moved));
  name_ = *moved;
  RT_ASSIGN_OR_RETURN(const bool locked, LeadsTo(LockPath(name_), lock_));
  return locked ? OkStatus() : LockAgain();
}

Status RunLock::Held::LockAgain() {
  RT_ASSIGN_OR_RETURN(lock_, LockFolder(name_));
  LogWarning(fmt::format("'{}' was removed during the run: created again", LockPath(name_)));
  return OkStatus();
}

Status RunLock::Held::MakeAgain() {
  Status taken = FailedPrecondition(
      fmt::format("the run folder '{}' was deleted during the run, and something else has its name "
                  "now; this run writes nothing there",
                  name_));
  if (!HoldsNothing(name_)) return taken;
  RT_RETURN_IF_ERROR(MakeDirectories(name_));
  RT_ASSIGN_OR_RETURN(FileDescriptor folder, FileDescriptor::Open(name_, O_RDONLY | O_DIRECTORY));
  RT_ASSIGN_OR_RETURN(FileDescriptor lock, LockFolder(name_));
  if (!HoldsNothing(name_)) return taken;  // another run started between two lines of this function
  folder_ = std::move(folder);
  lock_ = std::move(lock);
  ++times_remade_;
  LogWarning(
      fmt::format("the run folder '{}' was deleted during the run: created again; its "
                  "earlier files are lost",
                  name_));
  return OkStatus();
}

StatusOr<RunLock> RunLock::Acquire(const std::string& run_folder) {
  RT_RETURN_IF_ERROR(MakeDirectories(run_folder));
  RT_ASSIGN_OR_RETURN(FileDescriptor folder,
                      FileDescriptor::Open(run_folder, O_RDONLY | O_DIRECTORY));
  RT_ASSIGN_OR_RETURN(FileDescriptor lock, LockFolder(run_folder));
  return RunLock(std::make_shared<Held>(run_folder, std::move(folder), std::move(lock)));
}

const std::string& RunLock::run_folder() const { return held_->name(); }

int64_t RunLock::times_remade() const { return held_->times_remade(); }

StatusOr<std::string> RunLock::Folder() const {
  RT_RETURN_IF_ERROR(held_->Find());
  return held_->name();
}

StatusOr<HeldFolder> RunLock::Hold(const std::string& name) const {
  RT_RETURN_IF_ERROR(held_->Find());
  return HeldFolder::Open(held_->PathByNumber() + "/" + name, held_->name() + "/" + name);
}

}  // namespace ringtail
