// Files with secrets in them: tokens, keys. Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_MEMBERSHIP_PRIVATE_FILE_H_
#define RINGTAIL_DIST_MEMBERSHIP_PRIVATE_FILE_H_

#include <string>

#include "core/status.h"

namespace ringtail {

// The content of a regular file that its owner alone may read. PermissionDenied, with what to do,
// if its group or others may: then it is no secret. The mode that counts is that of the very file
// that is read, not of what had its name a moment before.
StatusOr<std::string> ReadPrivateFile(const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_PRIVATE_FILE_H_
