// Whether the threads that a program is about to need can be started.
//
// A library that cannot start a thread throws where nobody can catch it (oneTBB: from a thread of
// its own) or ends the process (libgomp), so the question is asked before. The answer can be
// outdated by the time the threads are made; for that there is core/terminate.h.
// Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_MACHINE_THREAD_LIMIT_H_
#define RINGTAIL_CORE_MACHINE_THREAD_LIMIT_H_

#include <string>
#include <string_view>

#include "core/status.h"

namespace ringtail {

// Where the address space is limited (ulimit -v, a batch system's h_vmem): keeps malloc from
// reserving 64 MiB of it for every thread, which would leave no room for the next one. To be called
// at the beginning of main(), before there are threads. Elsewhere it does nothing.
void SaveAddressSpace();

// Starts `count` threads, as large as any of ours, that do nothing, and ends them again. Where the
// address space is limited, with room for what a thread allocates.
// ResourceExhausted, with what limits there are, if not all of them can live at once:
//   "reading images: 3 of 8 threads could be started (Resource temporarily unavailable); limits: ..."
// Cost: about 20 us per thread.
Status CheckThreadsCanStart(int count, std::string_view what_for);

// What limits the threads of this process and how to raise it, as part of a sentence: "limits: 3
// processes and threads (pids.max of the control group), 300000 KiB of address space (ulimit -v);
// raise them, or take fewer threads (--threads, --set data.workers)". `root` as in core/machine/cgroup.h.
std::string DescribeThreadLimits(const std::string& root = "");

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_THREAD_LIMIT_H_
