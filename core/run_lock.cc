#include "core/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/file.h"

namespace ringtail {
namespace {

constexpr size_t kMaxHostName = 256;
constexpr int64_t kMaxLockBytes = 4096;

std::string HolderText() {
  std::array<char, kMaxHostName> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return std::to_string(getpid()) + "@" + host.data();
}

// "process 12 on host a" for "12@a"; somebody who has only just taken the lock has no name yet.
std::string DescribeHolder(const std::string& lock_path) {
  const StatusOr<std::string> text = ReadFileText(lock_path, kMaxLockBytes);
  const size_t at = text.ok() ? text->find('@') : std::string::npos;
  if (at == std::string::npos) return "another process";
  return "process " + text->substr(0, at) + " on host " + text->substr(at + 1);
}

}  // namespace

StatusOr<RunLock> RunLock::Acquire(const std::string& run_folder) {
  RT_RETURN_IF_ERROR(MakeDirectories(run_folder));
  const std::string path = run_folder + "/lock";
  RT_ASSIGN_OR_RETURN(FileDescriptor file, FileDescriptor::Open(path, O_RDWR | O_CREAT));
  int result = 0;
  do {
    result = flock(file.number(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EWOULDBLOCK) {
    return AlreadyExists("the run folder '" + run_folder + "' is in use by " +
                         DescribeHolder(path) + "; stop that run or choose another folder");
  }
  if (result != 0) return ErrnoStatus(errno, "cannot lock '" + path + "'");

  // The holder before us may have left its name.
  if (ftruncate(file.number(), 0) != 0) return ErrnoStatus(errno, "cannot empty '" + path + "'");
  const std::string holder = HolderText();
  RT_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(holder))));
  return RunLock(run_folder, std::move(file));
}

RunLock::~RunLock() {
  // Only so that nobody reads the name of a process that is gone; closing the file frees the lock.
  if (file_.number() >= 0 && ftruncate(file_.number(), 0) != 0) return;
}

}  // namespace ringtail
