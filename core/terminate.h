// The end of a process that ran out of threads or memory: one sentence that says which limit, and
// exit status 1, instead of "terminate called after throwing an instance of ..." and a core file.
//
// Ringtail throws nothing, but the libraries below it do where a thread or memory cannot be had, and
// may do so on threads of their own, where nobody can catch it.
#ifndef RINGTAIL_CORE_TERMINATE_H_
#define RINGTAIL_CORE_TERMINATE_H_

#include <cstddef>

namespace ringtail {

// To be called once, at the beginning of main(). `program` is the name before the sentence; it must
// live as long as the process. An exception of another kind still ends in abort().
void ExplainTermination(const char* program);

// The same sentence for an allocation of ours that the system has refused.
[[noreturn]] void EndWithoutMemory(size_t bytes);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_TERMINATE_H_
