// The exit codes of all programs. A program that a signal stops exits with 128 + its number.
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
  kExitLostPeer = 75,  // other ranks did not join or were lost: start the job again
  kExitDisagree = 76,  // the ranks hold different bits, and none can be proven wrong
  kExitSignalBase = 128,
};

inline int ExitCodeOf(const Status& status) {
  if (status.ok()) return kExitSuccess;
  if (status.code() == StatusCode::kCancelled && StopSignal() != 0) {
    return kExitSignalBase + StopSignal();
  }
  return status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

// For errors of joining and of collectives. dist/ returns Unavailable if another rank has ended or
// cannot be reached and DeadlineExceeded if it does not join or answer. Failures of this rank
// itself, for example to listen at a port in use, have other codes.
inline int ExitCodeOfWorld(const Status& status) {
  const bool peers =
      status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kDeadlineExceeded;
  return peers ? kExitLostPeer : ExitCodeOf(status);
}

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EXIT_CODE_H_
