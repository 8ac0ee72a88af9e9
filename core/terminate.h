// Ends a process that ran out of threads or memory with one sentence that names the limit, and exit
// status 1, instead of "terminate called after throwing an instance of ..." and a core file.
//
// Ringtail throws nothing, but its libraries throw where a thread or memory cannot be had, possibly
// on their own threads, where it cannot be caught.
#ifndef RINGTAIL_CORE_TERMINATE_H_
#define RINGTAIL_CORE_TERMINATE_H_

#include <cstddef>

namespace ringtail {

// Call once, at the start of main(). `program` is the name in front of the sentence and must live
// as long as the process. Other exceptions still end in abort().
void ExplainTermination(const char* program);

// The same sentence for an allocation of ours that failed.
[[noreturn]] void EndWithoutMemory(size_t bytes);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_TERMINATE_H_
