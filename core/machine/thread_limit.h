// Checks that threads can be started before a library needs them.
//
// A library that cannot start a thread throws where the exception cannot be caught (oneTBB: on a
// thread of its own) or ends the process (libgomp). The answer can be outdated by the time the
// threads are started; core/terminate.h covers that case.
// Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_MACHINE_THREAD_LIMIT_H_
#define RINGTAIL_CORE_MACHINE_THREAD_LIMIT_H_

#include <string>
#include <string_view>

#include "core/status.h"

namespace ringtail {

// Where the address space is limited (ulimit -v, a batch system's h_vmem): keeps malloc from
// reserving 64 MiB of it per thread, which would leave no room for further threads. Call it at the
// start of main(), before there are threads. No effect without such a limit.
void SaveAddressSpace();

// Starts `count` idle threads with stacks as large as any of ours (plus room for their allocations
// where the address space is limited), and ends them again. ResourceExhausted, with the limits, if
// they cannot all exist at once:
//   "reading images: 3 of 8 threads could be started (Resource temporarily unavailable); limits..."
// Cost: about 20 us per thread.
Status CheckThreadsCanStart(int count, std::string_view what_for);

// The limits on this process's threads and how to raise them, as part of a sentence: "limits: 3
// processes and threads (pids.max of the control group), 300000 KiB of address space (ulimit -v);
// raise them, or take fewer threads (--threads, --set data.workers)". `root` as in
// core/machine/cgroup.h.
std::string DescribeThreadLimits(const std::string& root = "");

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_THREAD_LIMIT_H_
