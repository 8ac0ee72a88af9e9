// The job's token: a secret that only the ranks of one job have, so that no rank of
// another job, and no stranger, gets in. The launcher makes it (ringtail_launch does).
// It comes from the environment or from a file, never from the command line, which every user of
// the machine can read; it is never sent (dist/membership/session.h) and never logged.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_MEMBERSHIP_SECURITY_JOB_TOKEN_H_
#define RINGTAIL_DIST_MEMBERSHIP_SECURITY_JOB_TOKEN_H_

#include <functional>
#include <optional>
#include <string>

#include "core/status.h"

namespace ringtail {

// The first of: the file `token_file` (--token-file), the variable RINGTAIL_TOKEN, the file that
// RINGTAIL_TOKEN_FILE names; empty if there is none of them. Files: see private_file.h; a newline
// at the end does not count. InvalidArgument: not 16 to 1024 bytes, or with spaces in it.
StatusOr<std::string> ReadJobToken(
    const std::optional<std::string>& token_file,
    const std::function<std::optional<std::string>(const std::string&)>& environment);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_SECURITY_JOB_TOKEN_H_
