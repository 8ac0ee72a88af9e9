// Whether a file of some size fits into a folder, known before anybody works hours for it.
//
// A temporary file of that size is allocated and removed: the file system answers for itself, with
// quotas, reserved blocks and limits. Where it cannot allocate (some network file systems), what it
// says is free counts. Thread-safety: functions without state; one caller per folder at a time.
// Cost: milliseconds; nothing is written.
#ifndef RINGTAIL_CORE_DISK_ROOM_H_
#define RINGTAIL_CORE_DISK_ROOM_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace ringtail {

// The error of the file system, with the size, the folder and what is free.
Status CheckDiskRoom(const std::string& folder, int64_t bytes);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_DISK_ROOM_H_
