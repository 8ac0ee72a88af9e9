#include "apps/launch/rank_end.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "apps/exit_code.h"
#include "apps/launch/number_list.h"
#include "core/stop_signal.h"

namespace ringtail {
namespace {

constexpr int kHostLostExitCode = 255;  // the exit code of ssh for its own failures

int ExitCodeOfEnd(const RankEnd& end) {
  switch (end.kind) {
    case RankEnd::Kind::kExited:
      return end.code;
    case RankEnd::Kind::kSignalled:
      return kExitSignalBase + end.code;
    default:
      return kHostLostExitCode;
  }
}

// The rank with the earliest end for which `wanted` holds; -1: none.
int Earliest(std::span<const RankEnd> ends, const std::function<bool(const RankEnd&)>& wanted) {
  int found = -1;
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    if (!wanted(ends[rank])) continue;
    if (found < 0 || ends[rank].order < ends[found].order) found = static_cast<int>(rank);
  }
  return found;
}

std::string MemoryHint(const RankEnd& end) {
  if (end.kind != RankEnd::Kind::kSignalled || end.code != SIGKILL) return "";
  constexpr double kMibPerKib = 1.0 / 1024;
  const std::string peak =
      fmt::format("its peak memory was {:.0f} MiB", static_cast<double>(end.peak_kib) * kMibPerKib);
  if (end.memory_kills == 0) return fmt::format("; {}", peak);
  return fmt::format(
      "; possibly out of memory: the kernel killed processes for lack of memory meanwhile, "
      "and {}",
      peak);
}

RankVerdict Blame(std::span<const RankEnd> ends, int rank, int exit_code, const std::string& what) {
  return {exit_code, rank, fmt::format("{} {}", NameOfRank(ends, rank), what)};
}

RankVerdict Stopped(int signal) {
  return {kExitSignalBase + signal, -1, "stopped by " + SignalName(signal)};
}

// The signal by which all ranks stopped together although it did not come through the launcher: a
// scheduler, or the kernel's limit of CPU time, sent it to one of them. 0: none.
int StoppedTogether(std::span<const RankEnd> ends) {
  const int code = ends.empty() ? 0 : ends[0].code;
  const bool together = std::all_of(ends.begin(), ends.end(), [&](const RankEnd& end) {
    return end.kind == RankEnd::Kind::kExited && end.code == code && !end.ended_by_launcher;
  });
  return together && AsksToStop(code - kExitSignalBase) ? code - kExitSignalBase : 0;
}

}  // namespace

std::string DescribeEnd(const RankEnd& end) {
  switch (end.kind) {
    case RankEnd::Kind::kNotStarted:
      return "was not started";
    case RankEnd::Kind::kRunning:
      return "runs";
    case RankEnd::Kind::kHostLost:
      return "was lost with its host";
    case RankEnd::Kind::kSignalled:
      return fmt::format("ended by {}{}", SignalName(end.code),
                         end.ended_by_launcher ? " (sent by the launcher)" : "");
    case RankEnd::Kind::kExited:
      break;
  }
  std::string text = fmt::format("exited with {}", end.code);
  if (end.lost_peer()) text += " (lost a peer)";
  if (end.disagrees()) text += " (holds other bits than another rank)";
  if (end.code > kExitSignalBase && end.code < kExitSignalBase + NSIG) {
    text += fmt::format(" ({})", SignalName(end.code - kExitSignalBase));
  }
  if (end.ended_by_launcher) text += " (after a signal from the launcher)";
  return text;
}

bool EndedAsAsked(const RankEnd& end, std::span<const int> asked) {
  return std::any_of(asked.begin(), asked.end(), [&](int signal) {
    return end.ended() && ExitCodeOfEnd(end) == kExitSignalBase + signal;
  });
}

std::string NameOfRank(std::span<const RankEnd> ends, int rank) {
  return fmt::format("rank {} ({}, process {})", rank, ends[rank].host, ends[rank].pid);
}

RankVerdict Judge(std::span<const RankEnd> ends, std::span<const int> asked) {
  if (const int signal = StoppedTogether(ends); signal != 0) return Stopped(signal);
  // That a host is gone may be noticed long after the others, which have lost it, have ended.
  const auto by_launcher = [&](const RankEnd& end) {
    return end.ended_by_launcher && (end.kind != RankEnd::Kind::kHostLost || !asked.empty());
  };
  const int failed = Earliest(ends, [&](const RankEnd& end) {
    return !end.good() && !end.lost_peer() && !by_launcher(end) && !EndedAsAsked(end, asked);
  });
  if (failed >= 0 && ends[failed].disagrees()) {
    return {kExitDisagree, -1,
            "the ranks hold different bits, and which of them is wrong cannot be told"};
  }
  if (failed >= 0) {
    return Blame(ends, failed, ExitCodeOfEnd(ends[failed]),
                 DescribeEnd(ends[failed]) + ": the first to fail" + MemoryHint(ends[failed]));
  }
  if (Earliest(ends, [](const RankEnd& end) { return !end.good(); }) < 0) return {};
  const int stopped = Earliest(ends, [&](const RankEnd& end) { return EndedAsAsked(end, asked); });
  if (stopped >= 0) return Stopped(ExitCodeOfEnd(ends[stopped]) - kExitSignalBase);
  for (const int signal : asked) {
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) return Stopped(signal);
  }
  const int lost = Earliest(ends, [](const RankEnd& end) { return end.lost_peer(); });
  // It may end after the first rank that lost it: a process closes its connections, which ends the
  // others, before its own end is seen.
  const int left = Earliest(ends, [&](const RankEnd& end) { return lost >= 0 && end.good(); });
  if (left >= 0) {
    return Blame(ends, left, kExitFailure,
                 fmt::format("left early: it exited with 0, and rank {} lost a peer", lost));
  }
  const int hung = Earliest(ends, [](const RankEnd& end) { return end.ended_by_launcher; });
  if (hung >= 0) {
    return Blame(ends, hung, ExitCodeOfEnd(ends[hung]),
                 "did not end by itself when others had lost a peer: it hung or was stopped");
  }
  return Blame(ends, lost, kExitLostPeer, "was the first to lose a peer; no rank failed by itself");
}

RankVerdict JudgeByRankZero(std::span<const RankEnd> ends, std::span<const int> asked) {
  const RankEnd& zero = ends[0];
  if (!zero.good()) {
    const bool own = !zero.lost_peer() && !zero.ended_by_launcher && !EndedAsAsked(zero, asked);
    if (!own || StoppedTogether(ends) != 0) return Judge(ends, asked);
    return Blame(ends, 0, ExitCodeOfEnd(zero),
                 DescribeEnd(zero) + ": without rank 0 the job ends" + MemoryHint(zero));
  }
  std::vector<int> lost;
  for (size_t rank = 1; rank < ends.size(); ++rank) {
    if (!ends[rank].good()) lost.push_back(static_cast<int>(rank));
  }
  if (lost.empty()) return {};
  return {0, -1,
          fmt::format("the job has succeeded without rank{} {}", lost.size() == 1 ? "" : "s",
                      FormatNumbers(lost))};
}

std::string EndTable(std::span<const RankEnd> ends) {
  std::map<std::string, std::vector<int>> ranks_by_end;
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    ranks_by_end[DescribeEnd(ends[rank])].push_back(static_cast<int>(rank));
  }
  std::string table;
  for (const auto& [end, ranks] : ranks_by_end) {
    table +=
        fmt::format("  rank{} {}: {}\n", ranks.size() == 1 ? "" : "s", FormatNumbers(ranks), end);
  }
  return table;
}

}  // namespace ringtail
