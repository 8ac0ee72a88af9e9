// How ranks ended, and which of them caused the end of the job.
//
// When one rank fails, all others fail soon after, because they wait for it; they report that by
// exit code 75. The verdict names the rank that failed first for a reason of its own. The first
// rule that applies decides:
//
//   0. All ranks stopped in the same way after a stop signal: no rank is to blame.
//   1. A rank was ended by a signal, or exited with a code other than 0 and 75: the earliest such
//      rank, except ranks ended by the launcher's signals or as the user asked. With code 76 the
//      ranks hold different bits, and the faulty one is unknown.
//   2. Some ranks lost a peer, and a rank exited with 0: that rank left early, although it saw no
//      error.
//   3. The launcher had to end a rank: it hung or was stopped.
//   4. Otherwise the cause is unknown: the verdict names the first rank that lost a peer.
//
// In a job that outlives its losses (--no-kill) rank 0 decides, and these rules come first:
//
//   a. Rank 0 exited with 0: the job has succeeded; the verdict names the ranks that were lost.
//   b. Rank 0 failed for a reason of its own: it is to blame, whichever rank failed before.
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
  bool ended_by_launcher = false;  // the launcher had sent it SIGTERM or SIGKILL before
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
  std::string text;  // one sentence; empty if all ranks succeeded
};

// `asked`: the signals that the user sent to the ranks through the launcher, in order.
RankVerdict Judge(std::span<const RankEnd> ends, std::span<const int> asked);

// The same for a job that outlives its losses.
RankVerdict JudgeByRankZero(std::span<const RankEnd> ends, std::span<const int> asked);

// Whether the rank ended by one of these signals, or with its exit code.
bool EndedAsAsked(const RankEnd& end, std::span<const int> asked);

std::string NameOfRank(std::span<const RankEnd> ends, int rank);  // "rank 2 (node7, process 4711)"

// One line per kind of end, with the ranks that ended so.
std::string EndTable(std::span<const RankEnd> ends);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_RANK_END_H_
