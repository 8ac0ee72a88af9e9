// Starting programs with pipes to them, and ending what is left of them. posix_spawn throughout: a
// fork would copy the state of a process that may have threads.
//
// Whoever calls EndAllChildren should have made itself the reaper of its descendants
// (AdoptOrphans): a process whose parent ends becomes its child then, however often it has forked
// and whatever group or session it has gone to, and cannot get away.
// Thread-safety: none.
#ifndef RINGTAIL_APPS_LAUNCH_CHILD_PROCESS_H_
#define RINGTAIL_APPS_LAUNCH_CHILD_PROCESS_H_

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

// The launcher's ends of a child's pipes, -1 where there is none. Closed by their owner.
struct ChildPipes {
  pid_t pid = -1;
  int input = -1, output = -1, errors = -1;
};

// Starts `arguments[0]`, looked up in PATH, as the leader of a process group of its own, with all
// signals at their defaults, none blocked, and no other open file of ours. Its input is a pipe or,
// without `with_input`, /dev/null.
StatusOr<ChildPipes> StartChild(const std::vector<std::string>& arguments,
                                const std::vector<std::string>& environment, bool with_input);

std::vector<std::string> OwnEnvironment();

void AdoptOrphans();

std::set<pid_t> Children();  // of this process

// Kills and reaps all children but `spared`, and their children once they are ours, until there is
// none. False if some do not end in `seconds` (they hang in the kernel).
bool EndAllChildren(const std::set<pid_t>& spared, int seconds);

// Whether process `pid`, our child, ends before `milliseconds` have passed; not reaped.
bool WaitForEnd(pid_t pid, int milliseconds);

// 0, 1 and 2 are open, if only on /dev/null: or our pipes would get their numbers.
void OpenStandardFiles();

// What `file` has to give now, at most `most` bytes; empty at its end (*ended) or if there is nothing.
std::string ReadAvailable(int file, size_t most, bool* ended);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_CHILD_PROCESS_H_
