// The lock of a run folder: one process writes there, a second one is refused.
//
// <run>/lock holds "pid@host" and is locked with flock(2). The kernel frees the lock when its
// holder ends, however it ends, so the lock of a dead run is simply taken over; there is no stale
// lock, no timeout, no --force. The file itself stays: deleting it would let two processes lock two
// files. Works across hosts on NFS (Linux turns flock into a lock of the server).
//
// People rename and delete folders that a run still writes to, and begin the next run under the
// same name. So what is locked is the folder and not its name: before each write Folder() looks
// whether the name still leads to it,
//
//   renamed      follows it, with a warning, and the run ends where it began;
//   deleted      makes it again, with a warning, unless something else has its name by now;
//   `lock` gone  takes it again, unless another run was faster.
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

// A handle: copies hold the same lock, until the last of them is gone.
class RunLock {
 public:
  // Makes the folder if it is missing.
  static StatusOr<RunLock> Acquire(const std::string& run_folder);

  // The folder as it was called when Folder() last looked.
  const std::string& run_folder() const;

  // Where the folder is now; FailedPrecondition if it is gone and its name is taken. Call it before
  // each write. Cost: two stat(2) where nothing has happened.
  StatusOr<std::string> Folder() const;

  // The folder `name` in it, for sure of this run: what is written through it gets into no other's.
  // Errors: as above; NotFound if it is not there.
  StatusOr<HeldFolder> Hold(const std::string& name) const;

  // How often the folder had to be made again. What else was in it is then lost, too.
  int64_t times_remade() const;

 private:
  class Held;
  explicit RunLock(std::shared_ptr<Held> held) : held_(std::move(held)) {}
  std::shared_ptr<Held> held_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_RUN_LOCK_H_
