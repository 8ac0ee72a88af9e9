// The processor's name, to tell measurements on different kinds of machine apart.
// Thread-safety: any thread.
#ifndef RINGTAIL_CORE_MACHINE_CPU_MODEL_H_
#define RINGTAIL_CORE_MACHINE_CPU_MODEL_H_

#include <string>

namespace ringtail {

// "AMD EPYC 9R14"; "unknown processor" if the kernel does not tell. Read once per process.
const std::string& CpuModel();

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_CPU_MODEL_H_
