// How ranks ended, and which of them was to blame.
//
// When one rank fails, all others fail soon after, because they wait for it in vain. They say so by
// exit code 75. What a person wants to know is who was first to fail of itself:
//
//   0. nobody, if all have stopped in the same way after a signal that asks to stop;
//   1. a rank that was ended by a signal, or that exited with another code than 0 and 75: the
//      earliest, unless the launcher had sent it the signal or the user had asked for the end; 76:
//      the ranks differ, and nobody knows whose fault it is;
//   2. no such rank, but some lost a peer: a rank that exited with 0 has left early, though all was
//      well from its own point of view;
//   3. else one that the launcher had to end: it hung, or was stopped;
//   4. else nobody knows: the first that lost a peer.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_LAUNCH_RANK_END_H_
#define RINGTAIL_APPS_LAUNCH_RANK_END_H_

#include <cstdint>
#include <span>
#include <string>

#include "apps/exit_code.h"

namespace ringtail {

struct RankEnd {
  enum class Kind { kNotStarted, kRunning, kExited, kSignalled, kHostLost };
  Kind kind = Kind::kNotStarted;
  int code = 0;                    // exit code, or signal
  int order = 0;                   // 1: the first rank that ended
  bool ended_by_launcher = false;  // the launcher had sent it SIGTERM or SIGKILL by then
  int64_t pid = 0, peak_kib = 0, memory_kills = 0;
  std::string host;

  bool ended() const { return kind >= Kind::kExited; }
  bool good() const { return kind == Kind::kExited && code == 0; }
  bool disagrees() const { return kind == Kind::kExited && code == kExitDisagree; }
  bool lost_peer() const { return kind == Kind::kExited && code == kExitLostPeer; }
};

std::string DescribeEnd(const RankEnd& end);  // "ended by SIGKILL", "exited with 75 (lost a peer)"

struct RankVerdict {
  int exit_code = 0;
  int culprit = -1;  // rank; -1: none
  std::string text;  // one sentence; empty if all is well
};

// `asked`: the signals that the user has sent to the ranks through the launcher, in order.
RankVerdict Judge(std::span<const RankEnd> ends, std::span<const int> asked);

// Whether it ended as a program does that takes one of these signals for what it is.
bool EndedAsAsked(const RankEnd& end, std::span<const int> asked);

std::string NameOfRank(std::span<const RankEnd> ends, int rank);  // "rank 2 (node7, process 4711)"

// One line for all ranks that ended in the same way.
std::string EndTable(std::span<const RankEnd> ends);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_RANK_END_H_
