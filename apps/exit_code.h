// What the program's exit status tells a script. Ended by a signal's wish: 128 + its number.
#ifndef RINGTAIL_APPS_EXIT_CODE_H_
#define RINGTAIL_APPS_EXIT_CODE_H_

#include "core/status.h"

namespace ringtail {

enum ExitCode : int {
  kExitSuccess = 0,
  kExitFailure = 1,
  kExitUsage = 2,      // a flag or a config is wrong
  kExitNotFinite = 3,  // training met a NaN or infinity
  kExitLostPeer = 75,  // another rank, or the way to it, was lost
  kExitDisagree = 76,  // the ranks hold different bits, and whose are wrong cannot be told
  kExitSignalBase = 128,
};

inline int ExitCodeOf(const Status& status) {
  if (status.ok()) return kExitSuccess;
  if (status.code() == StatusCode::kInvalidArgument) return kExitUsage;
  return status.code() == StatusCode::kUnavailable ? kExitLostPeer : kExitFailure;
}

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EXIT_CODE_H_
