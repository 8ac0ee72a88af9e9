// Files with secrets in them: tokens, keys. Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_MEMBERSHIP_SECURITY_PRIVATE_FILE_H_
#define RINGTAIL_DIST_MEMBERSHIP_SECURITY_PRIVATE_FILE_H_

#include <sys/types.h>

#include <string>

#include "core/status.h"

namespace ringtail {

// Whether a file with these permissions, of this user, can hold a secret: if its owner alone may
// do anything with it. If that is root, its group may read it, too, but no more: the
// administrator of the machine decides which users are in that group. So PostgreSQL takes keys
// (be-secure-common.c), and so Kubernetes mounts secrets for a container that is not root: they
// belong to root, and `fsGroup`, whatever their mode was, lets the container's group read them. Our
// own user does not matter: the kernel keeps out those that the permissions keep out.
bool IsPrivate(mode_t mode, uid_t owner);

// The content of a regular file that IsPrivate; else PermissionDenied, with what to do. The mode
// that counts is that of the very file that is read, not of what had its name a moment before.
StatusOr<std::string> ReadPrivateFile(const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_SECURITY_PRIVATE_FILE_H_
