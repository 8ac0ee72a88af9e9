// The lock of a run folder: one process writes there, a second one is refused.
//
// <run>/lock holds "pid@host" and is locked with flock(2). The kernel frees the lock when its
// holder ends, however it ends, so the lock of a dead run is simply taken over; there is no stale
// lock, no timeout, no --force. The file itself stays: deleting it would let two processes lock two
// files. Works across hosts on NFS (Linux turns flock into a lock of the server). Thread-safety:
// none. Errors: AlreadyExists names process and host of the holder.
#ifndef RINGTAIL_CORE_RUN_LOCK_H_
#define RINGTAIL_CORE_RUN_LOCK_H_

#include <string>

#include "core/file_descriptor.h"
#include "core/status.h"

namespace ringtail {

class RunLock {
 public:
  // Makes the folder if it is missing. Held until destruction.
  static StatusOr<RunLock> Acquire(const std::string& run_folder);
  ~RunLock();
  RunLock(RunLock&&) noexcept = default;
  RunLock& operator=(RunLock&&) noexcept = default;

  const std::string& run_folder() const { return run_folder_; }

 private:
  RunLock(std::string run_folder, FileDescriptor file)
      : run_folder_(std::move(run_folder)), file_(std::move(file)) {}
  std::string run_folder_;
  FileDescriptor file_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_RUN_LOCK_H_
