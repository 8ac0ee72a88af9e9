// What the program's exit status tells a script. Ended by a signal's wish: 128 + its number.
#ifndef RINGTAIL_APPS_EXIT_CODE_H_
#define RINGTAIL_APPS_EXIT_CODE_H_

#include "core/status.h"
#include "core/stop_signal.h"

namespace ringtail {

enum ExitCode : int {
  kExitSuccess = 0,
  kExitFailure = 1,
  kExitUsage = 2,      // a flag or a config is wrong
  kExitNotFinite = 3,  // training met a NaN or infinity
  kExitLostPeer = 75,  // this rank could go on, but others did not come or were lost: start again
  kExitDisagree = 76,  // the ranks hold different bits, and whose are wrong cannot be told
  kExitSignalBase = 128,
};

inline int ExitCodeOf(const Status& status) {
  if (status.ok()) return kExitSuccess;
  if (status.code() == StatusCode::kCancelled && StopSignal() != 0) {
    return kExitSignalBase + StopSignal();
  }
  return status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

// Of what the ranks do together (joining, collectives): dist/ says Unavailable if another rank is
// gone or cannot be reached, and DeadlineExceeded if it does not come or does not answer. Whatever
// this rank itself cannot do, to listen at a port in use for example, has another code.
inline int ExitCodeOfWorld(const Status& status) {
  const bool peers =
      status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kDeadlineExceeded;
  return peers ? kExitLostPeer : ExitCodeOf(status);
}

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EXIT_CODE_H_
