// Whether files of some sizes fit into a folder together, known before anybody works hours for them.
//
// Temporary files of these sizes are allocated and removed: the file system answers for itself, with
// quotas, reserved blocks and limits. Where it cannot allocate (some network file systems), what it
// says is free counts. Thread-safety: functions without state; one caller per folder at a time.
// Cost: nothing is written, but the file system keeps books. On ext4: 0.1 to 6 ms for up to
// 500 MiB, 70 to 130 ms for 5 GiB. On tmpfs, which clears the memory: 0.5 ms per MiB.
#ifndef RINGTAIL_CORE_STORAGE_DISK_ROOM_H_
#define RINGTAIL_CORE_STORAGE_DISK_ROOM_H_

#include <cstdint>
#include <span>
#include <string>

#include "core/status.h"

namespace ringtail {

// The error of the file system, with the size, the folder and what is free.
Status CheckDiskRoom(const std::string& folder, std::span<const int64_t> files);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_DISK_ROOM_H_
