// Starts programs with pipes to them, and ends their remaining processes. Uses posix_spawn, because
// a fork would copy the state of a process that may have threads.
//
// A process that calls EndAllChildren calls AdoptOrphans first: a descendant whose parent ends then
// becomes its child, however often it has forked and whatever its group or session.
// Thread-safety: none.
#ifndef RINGTAIL_APPS_LAUNCH_CHILD_PROCESS_H_
#define RINGTAIL_APPS_LAUNCH_CHILD_PROCESS_H_

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

// Our ends of the pipes of a child; -1: no pipe. The caller closes them.
struct ChildPipes {
  pid_t pid = -1;
  int input = -1, output = -1, errors = -1;
};

// Starts `arguments[0]`, looked up in PATH, as the leader of a new process group, with default
// handling of all signals, none blocked, and no open files other than its standard files. Its input
// is a pipe or, without `with_input`, /dev/null.
StatusOr<ChildPipes> StartChild(const std::vector<std::string>& arguments,
                                const std::vector<std::string>& environment, bool with_input);

std::vector<std::string> OwnEnvironment();

void AdoptOrphans();

std::set<pid_t> Children();  // of this process

// Kills and reaps all children except `spared`, and adopted descendants, until none is left. False
// if some do not end within `seconds` (they hang in the kernel).
bool EndAllChildren(const std::set<pid_t>& spared, int seconds);

// Whether the child `pid` ends within `milliseconds`; does not reap it.
bool WaitForEnd(pid_t pid, int milliseconds);

// Opens those of the files 0, 1 and 2 that are closed on /dev/null, so that pipes get other
// numbers.
void OpenStandardFiles();

// Reads the bytes that are available from `file` now, at most `most`. Sets *ended at the end of
// file.
std::string ReadAvailable(int file, size_t most, bool* ended);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_CHILD_PROCESS_H_
