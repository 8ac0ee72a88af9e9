// The lock of a run folder: one process writes there, a second one is refused.
//
// <run>/lock holds "pid@host" and is locked with flock(2). The kernel frees the lock when its
// holder ends, however it ends, so a new run simply takes over the lock of a dead one; there is no
// stale lock, no timeout, no --force. The file itself stays: deleting it would let two processes
// lock two files. Works across hosts on NFS (Linux turns flock into a lock of the server).
//
// Users rename and delete folders that a run still writes to, and start the next run under the same
// name. So the folder is locked and not its name: before each write Folder() checks whether the
// name still leads to it.
//
//   renamed      Folder() follows it, with a warning: the run ends in the folder it started in
//   deleted      Folder() creates it again, with a warning, unless something else has its name
//   `lock` gone  Folder() locks a new file, unless another run was faster
//
// Thread-safety: one thread. Errors: AlreadyExists names process and host of the holder.
#ifndef RINGTAIL_CORE_STORAGE_RUN_LOCK_H_
#define RINGTAIL_CORE_STORAGE_RUN_LOCK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"
#include "core/storage/file_descriptor.h"
#include "core/storage/held_folder.h"

namespace ringtail {

// A handle: copies share the lock, which is released with the last of them.
class RunLock {
 public:
  // Creates the folder if it is missing.
  static StatusOr<RunLock> Acquire(const std::string& run_folder);

  // The folder's name at the last call of Folder().
  const std::string& run_folder() const;

  // The folder's current name; FailedPrecondition if it is gone and its name is taken. Call it
  // before each write. Cost: two stat(2) if nothing has changed.
  StatusOr<std::string> Folder() const;

  // The subfolder `name`, open: files written through it cannot end up in another run's folder.
  // Errors: those of Folder(); NotFound if it does not exist.
  StatusOr<HeldFolder> Hold(const std::string& name) const;

  // How often the folder was created again; each time its other files were lost, too.
  int64_t times_remade() const;

 private:
  class Held;
  explicit RunLock(std::shared_ptr<Held> held) : held_(std::move(held)) {}
  std::shared_ptr<Held> held_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_RUN_LOCK_H_
